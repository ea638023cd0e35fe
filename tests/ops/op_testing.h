#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "tests/ops/op_context.h"
#include "tests/ops/tolerance.h"

namespace plenum::ops {

/// Every element, relative to the largest of `expected`. Reports the first that is off. `where` names the
/// result and the case.
inline void expect_near(std::span<const float> actual, std::span<const double> expected,
                        const std::string& where, double relative = kFloat32Relative) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  const double allowed = relative * largest + std::numeric_limits<float>::min();
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), allowed)
        << where << ": element " << i << " of " << actual.size() << " is " << actual[i] << " instead of "
        << expected[i];
    ASSERT_TRUE(std::isfinite(actual[i])) << where << ": element " << i;
  }
}
inline void expect_near(const TestTensor<float>& actual, std::span<const double> expected,
                        const std::string& where, double relative = kFloat32Relative) {
  expect_near(std::span<const float>(actual.values()), expected, where, relative);
}

}  // namespace plenum::ops
