#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Sixteen floats at a time, by the compiler's vector extensions: one register with AVX-512, two with AVX2,
// four with SSE. Lanes and orders are the same everywhere, so an algorithm written with these sums in one
// order on every machine. Operators work lane by lane; a * b + c becomes one fused instruction where there is
// one
// (-ffp-contract=fast). Comparisons give a Mask.
//
// For sources of kernels/cpu only, which are compiled for the machine's instruction set. Everything is
// inlined and nothing here has an address.

namespace plenum::kernels::cpu {

inline constexpr std::size_t kLanes = 16;

using Vec [[gnu::vector_size(64)]] = float;
using Mask [[gnu::vector_size(64)]] = std::int32_t;
/// How a Vec lies in memory that is aligned to floats alone.
using UnalignedVec [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;

[[gnu::always_inline]] inline Vec load(const float* from) {
  return *reinterpret_cast<const UnalignedVec*>(from);
}
[[gnu::always_inline]] inline void store(float* to, Vec value) {
  *reinterpret_cast<UnalignedVec*>(to) = value;
}

/// The first `count` floats, at most kLanes, and zeros.
[[gnu::always_inline]] inline Vec load_first(const float* from, std::size_t count) {
  Vec value = {};
  std::memcpy(&value, from, count * sizeof(float));
  return value;
}
/// Writes the first `count` lanes, at most kLanes, and nothing behind them.
[[gnu::always_inline]] inline void store_first(float* to, Vec value, std::size_t count) {
  std::memcpy(to, &value, count * sizeof(float));
}

[[gnu::always_inline]] inline Vec broadcast(float value) {
  return value - Vec{};
}

/// The greater one; b where either is not a number.
[[gnu::always_inline]] inline Vec max(Vec a, Vec b) {
  return a > b ? a : b;
}
/// The lesser one; b where either is not a number.
[[gnu::always_inline]] inline Vec min(Vec a, Vec b) {
  return a < b ? a : b;
}

[[gnu::always_inline]] inline Vec abs(Vec x) {
  return std::bit_cast<Vec>(std::bit_cast<Mask>(x) & 0x7fffffff);
}
/// |x| with the sign of `sign`.
[[gnu::always_inline]] inline Vec copy_sign(Vec x, Vec sign) {
  return std::bit_cast<Vec>((std::bit_cast<Mask>(x) & 0x7fffffff) |
                            (std::bit_cast<Mask>(sign) & ~0x7fffffff));
}

/// The sum of all lanes by halving: lane i is added to lane i + 8, then + 4, + 2, + 1.
[[gnu::always_inline]] inline float sum(Vec v) {
  const auto v8 = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                  __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto v4 = __builtin_shufflevector(v8, v8, 0, 1, 2, 3) + __builtin_shufflevector(v8, v8, 4, 5, 6, 7);
  const auto v2 = __builtin_shufflevector(v4, v4, 0, 1) + __builtin_shufflevector(v4, v4, 2, 3);
  return v2[0] + v2[1];
}

/// The greatest lane, by halving as in sum(); of lanes that are not numbers some are passed over.
[[gnu::always_inline]] inline float max_lane(Vec v) {
  const auto low8 = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high8 = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto v8 = low8 > high8 ? low8 : high8;
  const auto low4 = __builtin_shufflevector(v8, v8, 0, 1, 2, 3);
  const auto high4 = __builtin_shufflevector(v8, v8, 4, 5, 6, 7);
  const auto v4 = low4 > high4 ? low4 : high4;
  const float left = v4[0] > v4[2] ? v4[0] : v4[2];
  const float right = v4[1] > v4[3] ? v4[1] : v4[3];
  return left > right ? left : right;
}

/// exp(x + small), where |small| is at most a few hundredths of |x| and makes up for the rounding of x.
/// Relative error below 2e-7; gradually to 0 below -87, infinite above 88.7, not a number where x is none.
[[gnu::always_inline]] inline Vec exp(Vec x, Vec small) {
  // Exponents beyond these give 0 and infinity all the same. A comparison with NaN is false and keeps it.
  x = x < -110.0F ? broadcast(-110.0F) : x;
  x = x > 90.0F ? broadcast(90.0F) : x;
  // x = n log 2 + r. Adding 1.5 * 2^23 rounds to an integer and leaves it in the lowest bits; the first part
  // of log 2 has nine bits, so n times it is exact.
  constexpr float kRound = 12582912.0F;
  const Vec whole = x + small;
  const Vec shifted = whole * 1.44269504F + kRound;
  const Vec n = shifted - kRound;
  const Vec r = ((x - n * 0.693359375F) + n * 2.12194440e-4F) + small;
  Vec p = r * 0.0013814602F + 0.008368716F;
  p = p * r + 0.04166839F;
  p = p * r + 0.16666521F;
  p = p * r + 0.49999994F;
  p = (p * r) * r + (r + 1.0F);
  // 2^n in two factors: one alone can be out of range where the product is not.
  const Mask exponent = std::bit_cast<Mask>(shifted) - std::bit_cast<Mask>(broadcast(kRound));
  const Mask half = exponent >> 1;
  const Vec scaled = std::bit_cast<Vec>(std::bit_cast<Mask>(p) + (half << 23));
  const Vec result = scaled * std::bit_cast<Vec>((exponent - half + 127) << 23);
  // Of the bits of NaN this arithmetic can make a number.
  return whole == whole ? result : whole;
}

/// e^x, with the accuracy and the limits of exp(x, small).
[[gnu::always_inline]] inline Vec exp(Vec x) {
  return exp(x, Vec{});
}

/// The standard normal distribution at x: its density and its distribution function.
struct Normal {
  Vec density;       ///< phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  Vec distribution;  ///< Phi(x) = (1 + erf(x / sqrt 2)) / 2
};

/// Relative errors below 1e-6 wherever the result is a normal number, far into the left tail too.
[[gnu::always_inline]] inline Normal normal(Vec x) {
  // Beyond 16 both tails are 0. A comparison with NaN is false and keeps it.
  Vec a = abs(x);
  a = a > 16.0F ? broadcast(16.0F) : a;
  // Twelve leading bits have an exact square; the rest of a^2 is small.
  const Vec lead = std::bit_cast<Vec>(std::bit_cast<Mask>(a) & ~0xfff);
  const Vec e = exp(lead * lead * -0.5F, (lead - a) * (lead + a) * 0.5F);
  // Phi(-a) = exp(-a^2 / 2) t p(t), t = 1 / (1 + 0.35 a); p is the polynomial of least relative error (3e-8)
  // for 0 <= a <= 14.6, where exp(-a^2 / 2) vanishes.
  const Vec t = 1.0F / (a * 0.35F + 1.0F);
  Vec p = t * -0.029159639F + 0.14403957F;
  p = p * t + -0.25585717F;
  p = p * t + 0.1593408F;
  p = p * t + -0.023227159F;
  p = p * t + 0.105558895F;
  p = p * t + 0.11981963F;
  p = p * t + 0.13986374F;
  p = p * t + 0.13962129F;
  const Vec tail = e * (p * t);
  return {.density = e * 0.39894228F, .distribution = x < 0.0F ? tail : 1.0F - tail};
}

/// gelu(x) = x Phi(x), relative error below 1e-6; gradually to -0 on the left.
[[gnu::always_inline]] inline Vec gelu(Vec x) {
  return x * normal(x).distribution;
}

/// gelu'(x) = Phi(x) + x phi(x), absolute error below 1e-6.
[[gnu::always_inline]] inline Vec gelu_derivative(Vec x) {
  const Normal at = normal(x);
  return at.distribution + x * at.density;
}

/// tanh(x), relative error below 1e-6.
[[gnu::always_inline]] inline Vec tanh(Vec x) {
  const Vec a = abs(x);
  const Vec square = x * x;
  Vec p = square * -0.0057049864F + 0.020639086F;
  p = p * square + -0.053739715F;
  p = p * square + 0.13331442F;
  p = p * square + -0.3333328F;
  const Vec near = (p * square) * x + x;
  const Vec e = exp(a * -2.0F);
  const Vec far = copy_sign((1.0F - e) / (1.0F + e), x);
  return a < 0.625F ? near : far;
}

}  // namespace plenum::kernels::cpu
