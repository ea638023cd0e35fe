#pragma once

#include <gtest/gtest.h>

#include "plenum/tensor/cuda_device.h"

namespace plenum::test {

/// A fixture whose tests need a GPU: skipped, with the reason, where there is none.
template <typename Fixture = testing::Test>
class OnGpu : public Fixture {
 protected:
  void SetUp() override {
    if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
    Fixture::SetUp();
  }
};

}  // namespace plenum::test
