#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/base/thread_pool.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

#include "tests/ops/tolerance.h"

namespace plenum::ops {

/// A stream with its own threads or queue, and scratch. Every byte of that is 0xFF, in which all floating
/// point numbers are NaN, so that an op which reads scratch before it wrote there is seen.
class OpContext {
 public:
  /// Of the CPU.
  explicit OpContext(std::size_t num_threads = 1, std::size_t scratch_bytes_per_thread = kScratch)
      : pool_(num_threads),
        arena_(layout_of(num_threads * scratch_bytes_per_thread)),
        stream_(pool_, scratch()) {
    spoil_scratch();
  }
  /// Of a device, or of a part of the GPU; of the CPU with one thread.
  explicit OpContext(tensor::Device device, std::size_t scratch_bytes = kScratch,
                     std::shared_ptr<const tensor::CudaPartition> part = nullptr)
      : pool_(1),
        cuda_(device == tensor::Device::Cuda ? std::make_unique<tensor::CudaStream>(std::move(part))
                                             : nullptr),
        arena_(layout_of(scratch_bytes), device),
        stream_(cuda_ ? tensor::Stream(*cuda_, scratch()) : tensor::Stream(pool_, scratch())) {
    spoil_scratch();
  }

  const tensor::Stream& stream() const { return stream_; }

 private:
  static constexpr std::size_t kScratch = std::size_t{16} << 20;

  static tensor::MemoryLayout layout_of(std::size_t bytes) {
    tensor::MemoryLayout layout;
    layout.add("scratch", tensor::DType::Byte, {static_cast<std::int64_t>(bytes)});
    return layout;
  }
  tensor::TensorView bytes() const {
    const auto size = static_cast<std::int64_t>(arena_.num_bytes());
    return arena_.view({.offset = 0, .dtype = tensor::DType::Byte, .shape = {size}});
  }
  std::span<std::byte> scratch() const { return bytes().span<std::byte>(); }
  void spoil_scratch() const {
    const std::vector<std::byte> spoilt(arena_.num_bytes(), std::byte{0xFF});
    tensor::copy(stream_, {spoilt.data(), bytes().shape()}, bytes());
    stream_.wait();
  }

  base::ThreadPool pool_;
  std::unique_ptr<tensor::CudaStream> cuda_;
  tensor::Arena arena_;
  tensor::Stream stream_;
};

/// A tensor that owns its elements. Converts to the views that ops take.
template <typename Element = float>
class TestTensor {
 public:
  TestTensor() = default;
  explicit TestTensor(tensor::Shape shape, Element value = {})
      : shape_(shape), values_(static_cast<std::size_t>(shape.num_elements()), value) {}
  TestTensor(tensor::Shape shape, std::vector<Element> values) : shape_(shape), values_(std::move(values)) {}

  const tensor::Shape& shape() const { return shape_; }
  std::vector<Element>& values() { return values_; }
  const std::vector<Element>& values() const { return values_; }
  /// For the double-precision references.
  std::vector<double> doubles() const { return {values_.begin(), values_.end()}; }

  tensor::TensorView view() { return {address(values_), shape_}; }
  tensor::ConstTensorView view() const { return {address(values_), shape_}; }
  operator tensor::TensorView() { return view(); }
  operator tensor::ConstTensorView() const { return view(); }

  friend bool operator==(const TestTensor&, const TestTensor&) = default;

 private:
  // A tensor without elements is still one that was given: its address must not be null.
  static Element* address(std::vector<Element>& values) {
    static Element nothing{};
    return values.empty() ? &nothing : values.data();
  }
  static const Element* address(const std::vector<Element>& values) {
    return address(const_cast<std::vector<Element>&>(values));
  }

  tensor::Shape shape_;
  std::vector<Element> values_;
};

/// Numbers between -scale and scale, the same for the same seed.
inline TestTensor<float> random_tensor(tensor::Shape shape, std::uint64_t seed, double scale = 1) {
  const base::RandomFunction random(seed, base::Purpose::Initialisation);
  TestTensor<float> result(shape);
  for (std::size_t i = 0; i < result.values().size(); ++i) {
    result.values()[i] = static_cast<float>(scale * (2 * base::to_unit_interval(random(i)) - 1));
  }
  return result;
}

/// The gradient of `loss` at `point` by central differences. `loss` is a double-precision reference.
inline std::vector<double> numeric_gradient(std::vector<double> point,
                                            const std::function<double(const std::vector<double>&)>& loss,
                                            double step = kDifferenceStep) {
  std::vector<double> gradient(point.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double at = point[i];
    point[i] = at + step;
    const double above = loss(point);
    point[i] = at - step;
    const double below = loss(point);
    point[i] = at;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

/// The sum of products of two arrays: a loss whose gradient is known.
inline double dot(std::span<const double> a, std::span<const double> b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

/// a + b, element by element: what an accumulating op leaves.
inline std::vector<double> plus(std::vector<double> a, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace plenum::ops
