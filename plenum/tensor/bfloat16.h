#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace plenum::tensor {

/// The upper half of a float: its sign, its exponent and the first 7 bits of its fraction. GPUs compute with
/// it; the CPU only converts.
struct BFloat16 {
  std::uint16_t bits = 0;

  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

/// The nearest, of two equally near the even one. NaN stays NaN.
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

}  // namespace plenum::tensor
