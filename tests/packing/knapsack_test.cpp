#include "plenum/packing/knapsack.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace plenum::packing {
namespace {

/// max over patterns, one length at a time.
std::int64_t best_by_recursion(const std::vector<std::int64_t>& values, std::int64_t tokens,
                               std::int64_t depth, std::int64_t from = 1) {
  std::int64_t best = 0;
  if (depth == 0) return best;
  for (std::int64_t length = from; length <= tokens; ++length) {
    best = std::max(best, values[static_cast<std::size_t>(length)] +
                              best_by_recursion(values, tokens - length, depth - 1, length));
  }
  return best;
}

TEST(PatternKnapsack, EqualsTryingEveryPattern) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 400; ++trial) {
    const std::int64_t capacity = 1 + random() % 16;
    const std::int64_t depth = random() % 9;
    std::vector<std::int64_t> values(static_cast<std::size_t>(capacity) + 1);
    for (std::size_t length = 1; length < values.size(); ++length) {
      values[length] = random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 100);
    }
    const PatternKnapsack<std::int64_t> exact(values, depth);
    const std::vector<double> real_values(values.begin(), values.end());
    const PatternKnapsack<double> real(real_values, depth);
    for (std::int64_t tokens = 0; tokens <= capacity; ++tokens) {
      const std::int64_t expected = best_by_recursion(values, tokens, depth);
      ASSERT_EQ(exact.best(tokens), expected) << "trial " << trial << " tokens " << tokens;
      ASSERT_EQ(real.best(tokens), static_cast<double>(expected))
          << "trial " << trial << " tokens " << tokens;
    }
  }
}

TEST(PatternKnapsack, AppendsAPatternWorthTheBest) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 400; ++trial) {
    const std::int64_t capacity = 1 + random() % 60;
    const std::int64_t depth = random() % 20;
    std::vector<double> values(static_cast<std::size_t>(capacity) + 1);
    for (std::size_t length = 1; length < values.size(); ++length) {
      values[length] = random() % 3 == 0 ? -1.0 : static_cast<double>(random() % 1000) / 999;
    }
    const PatternKnapsack<double> knapsack(values, depth);
    std::vector<std::int32_t> lengths{7};
    knapsack.append_best(capacity, lengths);
    ASSERT_EQ(lengths.front(), 7);
    lengths.erase(lengths.begin());
    double value = 0;
    for (const std::int32_t length : lengths) value += values[static_cast<std::size_t>(length)];
    ASSERT_NEAR(value, knapsack.best(capacity), 1e-12) << "trial " << trial;
    ASSERT_LE(static_cast<std::int64_t>(lengths.size()), depth);
    ASSERT_LE(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), capacity);
  }
}

TEST(PatternKnapsack, IsEmptyWithoutDepthOrValue) {
  const std::vector<double> values{0, 1, 2};
  EXPECT_EQ(PatternKnapsack<double>(values, 0).best(2), 0);
  EXPECT_EQ(PatternKnapsack<double>(std::vector<double>(3), 5).best(2), 0);
  std::vector<std::int32_t> lengths;
  PatternKnapsack<double>(std::vector<double>(3), 5).append_best(2, lengths);
  EXPECT_TRUE(lengths.empty());
}

}  // namespace
}  // namespace plenum::packing
