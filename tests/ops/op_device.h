#pragma once

#include <string>

#include <gtest/gtest.h>

#include "plenum/tensor/cuda_device.h"

#include "tests/ops/op_arguments.h"
#include "tests/ops/op_testing.h"

namespace plenum::ops {

/// A test that runs once on each device: TEST_P(MyOp, DoesThis) with INSTANTIATE_TEST_SUITE_P(..., kDevices,
/// device_of). Skipped, with the reason, where there is no GPU.
class OnDevice : public testing::TestWithParam<tensor::Device> {
 protected:
  void SetUp() override {
    if (device() != tensor::Device::Cuda) return;
    if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  }
  static tensor::Device device() { return GetParam(); }
};
inline const auto kDevices = testing::Values(tensor::Device::Cpu, tensor::Device::Cuda);
inline const auto kGpuAlone = testing::Values(tensor::Device::Cuda);
inline std::string device_of(const testing::TestParamInfo<tensor::Device>& info) {
  return info.param == tensor::Device::Cpu ? "cpu" : "cuda";
}

}  // namespace plenum::ops
