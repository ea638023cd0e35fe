#include "plenum/base/philox.h"

#include <gtest/gtest.h>

namespace plenum::base {
namespace {

// The known answers published with Random123 (kat_vectors, philox4x32, 10 rounds).
TEST(Philox, GivesThePublishedTestVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsEvaluatedAtCompileTime) {
  static_assert(philox({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}

TEST(Philox, IsTheSameByRoundKeys) {
  const PhiloxKey key = {0xFFFFFFF0, 7};
  for (std::uint32_t i = 0; i < 100; ++i) {
    const PhiloxCounter counter = {i, ~i, 3 * i, 0xABCDEF01};
    EXPECT_EQ(philox_by_round_keys(counter, philox_round_keys(key)), philox(counter, key)) << i;
  }
}

TEST(RandomFunction, DiffersInEveryPartOfTheIdentity) {
  const RandomFunction base_function(1, Purpose::Dropout, 2);
  const PhiloxCounter value = base_function(3, 4, 5, 6);
  EXPECT_EQ(value, RandomFunction(1, Purpose::Dropout, 2)(3, 4, 5, 6));
  EXPECT_NE(value, RandomFunction(2, Purpose::Dropout, 2)(3, 4, 5, 6));
  EXPECT_NE(value, RandomFunction(1, Purpose::Order, 2)(3, 4, 5, 6));
  EXPECT_NE(value, RandomFunction(1, Purpose::Dropout, 3)(3, 4, 5, 6));
  EXPECT_NE(value, base_function(4, 4, 5, 6));
  EXPECT_NE(value, base_function(3 + (std::uint64_t{1} << 32), 4, 5, 6));
  EXPECT_NE(value, base_function(3, 5, 5, 6));
  EXPECT_NE(value, base_function(3, 4, 6, 6));
  EXPECT_NE(value, base_function(3, 4, 5, 7));
}

// A change here changes every run ever made: masks, order, weights.
TEST(RandomFunction, IsFrozen) {
  EXPECT_EQ(RandomFunction(42, Purpose::Order, 7)(123456789012, 3, 2, 1),
            (PhiloxCounter{485713104, 4073205181, 2991505244, 4282216061}));
}

TEST(RandomFunction, IsUniform) {
  const RandomFunction random(5, Purpose::MaskPositions);
  constexpr int kDraws = 100000;
  double sum = 0;
  std::array<int, 10> buckets{};
  for (int i = 0; i < kDraws; ++i) {
    const double value = to_unit_interval(random(static_cast<std::uint64_t>(i)));
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    ++buckets[to_range(random(static_cast<std::uint64_t>(i)), 10)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  for (const int count : buckets) EXPECT_NEAR(count, kDraws / 10, 500);
}

}  // namespace
}  // namespace plenum::base
