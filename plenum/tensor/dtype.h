#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plenum::tensor {

/// What an element of a buffer is.
enum class DType : std::uint8_t { Float32, Float64 };

std::size_t size_of(DType dtype);
std::string_view dtype_name(DType dtype);

}  // namespace plenum::tensor
