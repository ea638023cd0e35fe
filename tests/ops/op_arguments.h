#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "plenum/tensor/arena.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/copy.h"

#include "tests/ops/op_context.h"
#include "tests/ops/tolerance.h"

namespace plenum::ops {

/// How far results of the device's compute_dtype may be from the reference of the same inputs.
inline double compute_tolerance(tensor::Device device) {
  return device == tensor::Device::Cpu ? kFloat32Relative : kBFloat16Relative;
}

/// The values that the device's compute_dtype can hold, nearest to these: so that a reference sees the same
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
  /// What it reads as compute_dtype. Values that it cannot hold are rounded: see rounded().
  tensor::ConstTensorView in_compute(const TestTensor<float>& tensor) {
    return is_on_host() ? tensor.view() : tensor::ConstTensorView(uploaded_compute(tensor));
  }
  /// What it writes, or reads and writes. Borrows the tensor until fetch().
  template <typename Element>
  tensor::TensorView out(TestTensor<Element>& tensor) {
    note_written(tensor);
    if (is_on_host()) return tensor.view();
    const tensor::TensorView view = uploaded<Element>(tensor.view());
    fetches_.push_back([this, view, &tensor] {
      tensor::copy(stream_, view, tensor.view());
      stream_.wait();
    });
    return view;
  }
  tensor::TensorView out_compute(TestTensor<float>& tensor) {
    note_written(tensor);
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

  /// The bytes of all that was given to be written, as fetch() brought them back: to compare two runs.
  std::vector<std::vector<std::byte>> written() const {
    std::vector<std::vector<std::byte>> all;
    for (const std::span<const std::byte> bytes : written_) all.emplace_back(bytes.begin(), bytes.end());
    return all;
  }

 private:
  template <typename Element>
  void note_written(const TestTensor<Element>& tensor) {
    written_.push_back(std::as_bytes(std::span(tensor.values())));
  }
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
  std::vector<std::span<const std::byte>> written_;
};

}  // namespace plenum::ops
