#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plenum/tensor/bfloat16.h"

namespace plenum::tensor {

/// What an element of a buffer is.
enum class DType : std::uint8_t { Float32, Float64, Int64, Byte, Int32, BFloat16 };

std::size_t size_of(DType dtype);
std::string_view dtype_name(DType dtype);

/// The DType of a C++ type; no other types have one.
template <typename Element>
inline constexpr DType kDTypeOf = Element::has_no_dtype;
template <>
inline constexpr DType kDTypeOf<float> = DType::Float32;
template <>
inline constexpr DType kDTypeOf<double> = DType::Float64;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::Int64;
template <>
inline constexpr DType kDTypeOf<std::byte> = DType::Byte;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::Int32;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::BFloat16;

}  // namespace plenum::tensor
