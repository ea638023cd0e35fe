#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include <gtest/gtest.h>

namespace plenum::test {

// What bf16 may change in a model of two layers, relative to fp32. A rounding is off by 2^-9 at most, and by
// 1.1e-3 of its value in the mean square. A gradient has passed about thirty of them, forward and backward;
// as independent errors they add up to 6e-3, and softmax and LayerNorm, which subtract what values have in
// common, enlarge that a few times. Logits have passed half as many.
inline constexpr double kBFloat16Gradient = 4e-2;
inline constexpr double kBFloat16Logits = 2e-2;
/// Of a mean over some dozen tokens.
inline constexpr double kBFloat16Loss = 5e-3;
/// Of gradients of two runs in bf16 that round at the same places, but sum in other orders.
inline constexpr double kBFloat16Rearranged = 2e-2;

/// |actual - expected| / |expected|, by Euclidean norm.
inline double relative_distance(std::span<const float> actual, std::span<const float> expected) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (double{actual[i]} - expected[i]) * (double{actual[i]} - expected[i]);
    size += double{expected[i]} * expected[i];
  }
  return std::sqrt(difference / size);
}

/// Expects the gradient of a parameter within a band, by norm, and zero where it should be; that of a key's
/// bias is.
inline void expect_gradient_in_band(const std::string& name, std::span<const float> actual,
                                    std::span<const float> expected, double band) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  const auto is_zero = [](std::span<const float> values) {
    return std::ranges::all_of(values, [](float value) { return value == 0; });
  };
  // It shifts all scores of a query alike, which softmax takes back.
  EXPECT_TRUE(is_zero(expected) || !name.ends_with("key.bias")) << name;
  if (is_zero(expected)) {
    EXPECT_TRUE(is_zero(actual)) << name;
    return;
  }
  const double distance = relative_distance(actual, expected);
  EXPECT_LE(distance, band) << name;
  testing::Test::RecordProperty(name, std::to_string(distance));
}

}  // namespace plenum::test
