#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "plenum/base/check.h"
#include "plenum/tensor/dtype.h"

namespace plenum::comm {

/// Elements of one type that lie in a row, borrowed: what messages and collectives work on.
template <typename Byte>
struct BasicElements {
  std::span<Byte> bytes;
  tensor::DType dtype = tensor::DType::Byte;

  std::size_t count() const { return bytes.size() / tensor::size_of(dtype); }
  /// Throws InternalError if the bytes end within an element.
  void check_whole() const {
    base::check(bytes.size() % tensor::size_of(dtype) == 0,
                "a buffer must hold whole elements: {} bytes of {}", bytes.size(), tensor::dtype_name(dtype));
  }
  BasicElements part(std::size_t first, std::size_t num) const {
    const std::size_t size = tensor::size_of(dtype);
    return {bytes.subspan(first * size, num * size), dtype};
  }
  operator BasicElements<const std::byte>() const { return {bytes, dtype}; }
};

using Elements = BasicElements<std::byte>;
using ConstElements = BasicElements<const std::byte>;

template <typename Element>
Elements elements_of(std::span<Element> values) {
  return {std::as_writable_bytes(values), tensor::kDTypeOf<Element>};
}

template <typename Element>
ConstElements elements_of(std::span<const Element> values) {
  return {std::as_bytes(values), tensor::kDTypeOf<Element>};
}

}  // namespace plenum::comm
