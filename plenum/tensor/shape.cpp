#include "plenum/tensor/shape.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "plenum/base/check.h"

namespace plenum::tensor {

Shape::Shape(std::span<const std::int64_t> sizes) : num_dims_(static_cast<std::uint8_t>(sizes.size())) {
  base::check(sizes.size() <= kMaxDims, "too many dimensions: {}", sizes.size());
  for (const std::int64_t size : sizes) base::check(size >= 0, "a dimension must not be negative: {}", size);
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}

std::int64_t Shape::num_elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes()) product *= size;
  return product;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.sizes(), ", "));
}

}  // namespace plenum::tensor
