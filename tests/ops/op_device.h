#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/tensor/arena.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_device.h"

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

/// How far activations of the device may be from the reference of the same inputs.
inline double compute_tolerance(tensor::Device device) {
  return device == tensor::Device::Cpu ? kFloat32Relative : kBFloat16Relative;
}

/// The values that activations of the device can hold, nearest to these: so that a reference sees the same
/// inputs as the op.
inline TestTensor<float> rounded(TestTensor<float> tensor, tensor::Device device) {
  if (device == tensor::Device::Cpu) return tensor;
  for (float& value : tensor.values()) value = tensor::to_float(tensor::to_bfloat16(value));
  return tensor;
}

/// The arguments of an op where it runs. On the CPU they are the test's own tensors. On the GPU they are
/// copies; those that the op writes come back with fetch().
class Arguments {
 public:
  /// Borrows the context.
  explicit Arguments(const OpContext& context) : stream_(context.stream()) {}

  /// What the op reads.
  template <typename Element>
  tensor::ConstTensorView in(const TestTensor<Element>& tensor) {
    return is_on_host() ? tensor.view() : tensor::ConstTensorView(uploaded<Element>(tensor.view()));
  }
  /// What it reads as activations or weights. Values that it cannot hold are rounded: see rounded().
  tensor::ConstTensorView in_compute(const TestTensor<float>& tensor) {
    return is_on_host() ? tensor.view() : tensor::ConstTensorView(uploaded_compute(tensor));
  }
  /// What it writes, or reads and writes. Borrows the tensor until fetch().
  template <typename Element>
  tensor::TensorView out(TestTensor<Element>& tensor) {
    if (is_on_host()) return tensor.view();
    const tensor::TensorView view = uploaded<Element>(tensor.view());
    fetches_.push_back([this, view, &tensor] {
      tensor::copy(stream_, view, tensor.view());
      stream_.wait();
    });
    return view;
  }
  tensor::TensorView out_compute(TestTensor<float>& tensor) {
    if (is_on_host()) return tensor.view();
    const tensor::TensorView view = uploaded_compute(tensor);
    fetches_.push_back([this, view, &tensor] {
      std::vector<tensor::BFloat16> values(tensor.values().size());
      tensor::copy(stream_, view, tensor::TensorView(values.data(), tensor.shape()));
      stream_.wait();
      std::ranges::transform(values, tensor.values().begin(), tensor::to_float);
    });
    return view;
  }

  /// Waits for the op and brings back what it wrote.
  void fetch() {
    stream_.wait();
    for (const std::function<void()>& fetch : fetches_) fetch();
  }

 private:
  bool is_on_host() const { return stream_.device() == tensor::Device::Cpu; }

  tensor::TensorView allocated(tensor::DType dtype, const tensor::Shape& shape) {
    // An empty tensor is still one that was given.
    const auto bytes = static_cast<std::size_t>(shape.num_elements()) * tensor::size_of(dtype);
    arenas_.emplace_back(std::max<std::size_t>(bytes, 16), tensor::Device::Cuda);
    return arenas_.back().view({.offset = 0, .dtype = dtype, .shape = shape});
  }
  template <typename Element>
  tensor::TensorView uploaded(const tensor::ConstTensorView& host) {
    const tensor::TensorView view = allocated(host.dtype(), host.shape());
    tensor::copy(stream_, host, view);
    stream_.wait();
    return view;
  }
  tensor::TensorView uploaded_compute(const TestTensor<float>& tensor) {
    std::vector<tensor::BFloat16> values(tensor.values().size());
    std::ranges::transform(tensor.values(), values.begin(), tensor::to_bfloat16);
    const tensor::TensorView view = allocated(tensor::DType::BFloat16, tensor.shape());
    tensor::copy(stream_, tensor::ConstTensorView(values.data(), tensor.shape()), view);
    stream_.wait();
    return view;
  }

  const tensor::Stream& stream_;
  std::deque<tensor::Arena> arenas_;
  std::vector<std::function<void()>> fetches_;
};

}  // namespace plenum::ops
