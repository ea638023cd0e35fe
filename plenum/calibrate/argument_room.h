#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plenum/tensor/arena.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/stream.h"

namespace plenum::calibrate {

/// Memory of a device from which the arguments of ops are cut one after another, and filled: never with
/// zeros alone, of which a CPU reads one page again and again, and which a GPU multiplies with less power.
class ArgumentRoom {
 public:
  /// Only counts: what it gives has a type and a shape, and lies nowhere.
  explicit ArgumentRoom(tensor::Device device) : device_(device) {}
  /// Borrows the stream, on which it is filled.
  ArgumentRoom(const tensor::Stream& stream, std::size_t num_bytes)
      : device_(stream.device()),
        stream_(&stream),
        arena_(std::make_unique<tensor::Arena>(num_bytes, device_)) {}

  tensor::Device device() const { return device_; }
  bool only_counts() const { return arena_ == nullptr; }
  /// Since the last clear().
  std::size_t num_bytes() const { return layout_.num_bytes(); }
  /// The next arguments take the place of those before.
  void clear() { layout_ = tensor::MemoryLayout(); }

  /// For what an op overwrites: holds anything.
  tensor::TensorView output(tensor::DType dtype, const tensor::Shape& shape);
  /// Numbers in [-1, 1), or for squares in [0, 1); Float32 or BFloat16.
  tensor::TensorView random(tensor::DType dtype, const tensor::Shape& shape);
  tensor::TensorView random_squares(const tensor::Shape& shape);

  template <typename Element>
  tensor::TensorView of(const std::vector<Element>& values, const tensor::Shape& shape) {
    const tensor::TensorView view = output(tensor::kDTypeOf<Element>, shape);
    if (arena_ && shape.num_elements() > 0) {
      tensor::copy(*stream_, tensor::ConstTensorView(values.data(), shape), view);
      stream_->wait();
    }
    return view;
  }
  template <typename Element>
  tensor::TensorView of(const std::vector<Element>& values) {
    return of(values, {static_cast<std::int64_t>(values.size())});
  }

 private:
  /// Copies a pattern until the view is full.
  template <typename Element>
  void repeat(const std::vector<Element>& pattern, const tensor::TensorView& view);

  tensor::Device device_;
  const tensor::Stream* stream_ = nullptr;
  std::unique_ptr<tensor::Arena> arena_;  ///< null: it only counts
  tensor::MemoryLayout layout_;
};

}  // namespace plenum::calibrate
