#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace plenum::tensor {

/// The sizes of a row-major array of up to four dimensions.
class Shape {
 public:
  static constexpr std::size_t kMaxDims = 4;

  constexpr Shape() = default;
  /// Throws InternalError for more than kMaxDims sizes or a negative one.
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  std::size_t num_dims() const { return num_dims_; }
  std::int64_t operator[](std::size_t dim) const { return sizes_[dim]; }
  std::span<const std::int64_t> sizes() const { return {sizes_.data(), num_dims_}; }
  /// The product; 1 without dimensions.
  std::int64_t num_elements() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxDims> sizes_{};
  std::uint8_t num_dims_ = 0;
};

/// "[128, 768]".
std::string to_string(const Shape& shape);

}  // namespace plenum::tensor
