#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include "plenum/base/check.h"
#include "plenum/tensor/dtype.h"
#include "plenum/tensor/shape.h"

namespace plenum::tensor {

/// A dense row-major array, borrowed. `Void` is void, or const void for what is only read. A default one
/// stands for an argument that is left out.
template <typename Void>
class BasicTensorView {
 public:
  template <typename Element>
  using Pointer = std::conditional_t<std::is_const_v<Void>, const Element*, Element*>;

  BasicTensorView() = default;
  BasicTensorView(Void* data, DType dtype, Shape shape) : data_(data), dtype_(dtype), shape_(shape) {}
  template <typename Element>
  requires(!std::is_void_v<Element>) BasicTensorView(Element* data, Shape shape)
      : BasicTensorView(data, kDTypeOf<std::remove_const_t<Element>>, shape) {}
  /// What may be written may be read.
  template <typename Other>
  requires(std::is_const_v<Void> && !std::is_const_v<Other>)
      BasicTensorView(const BasicTensorView<Other>& other)
      : BasicTensorView(other.raw(), other.dtype(), other.shape()) {}

  /// Whether the argument was given.
  explicit operator bool() const { return data_ != nullptr; }

  Void* raw() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size(std::size_t dim) const { return shape_[dim]; }
  std::int64_t num_elements() const { return shape_.num_elements(); }
  std::size_t num_bytes() const { return static_cast<std::size_t>(num_elements()) * size_of(dtype_); }

  /// The elements. Throws InternalError if they are of another type.
  template <typename Element>
  Pointer<Element> data() const {
    base::check(dtype_ == kDTypeOf<Element>, "a tensor of {} was read as {}", dtype_name(dtype_),
                dtype_name(kDTypeOf<Element>));
    return static_cast<Pointer<Element>>(data_);
  }
  template <typename Element>
  auto span() const {
    return std::span(data<Element>(), static_cast<std::size_t>(num_elements()));
  }

  /// `count` rows, entries of the first dimension, from the row `begin` on.
  BasicTensorView rows(std::int64_t begin, std::int64_t count) const {
    base::check(shape_.num_dims() > 0 && begin >= 0 && count >= 0 && begin + count <= shape_[0],
                "a tensor of shape {} has no {} rows from {} on", to_string(shape_), count, begin);
    std::array<std::int64_t, Shape::kMaxDims> sizes{};
    std::copy(shape_.sizes().begin(), shape_.sizes().end(), sizes.begin());
    sizes[0] = count;
    const Shape shape(std::span<const std::int64_t>(sizes.data(), shape_.num_dims()));
    const std::size_t bytes_before =
        shape_[0] == 0 ? 0
                       : num_bytes() / static_cast<std::size_t>(shape_[0]) * static_cast<std::size_t>(begin);
    return {static_cast<Pointer<std::byte>>(data_) + bytes_before, dtype_, shape};
  }
  BasicTensorView first_rows(std::int64_t count) const { return rows(0, count); }

 private:
  Void* data_ = nullptr;
  DType dtype_ = DType::Float32;
  Shape shape_;
};

using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

}  // namespace plenum::tensor
