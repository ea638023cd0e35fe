#include "plenum/base/permutation.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::base {
namespace {

std::vector<std::uint64_t> all_values(const KeyedPermutation& permutation) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < permutation.size(); ++i) values.push_back(permutation(i));
  return values;
}

TEST(KeyedPermutation, IsABijectionOfEverySmallRange) {
  for (std::uint64_t size = 0; size < 300; ++size) {
    const KeyedPermutation permutation(RandomFunction(1, Purpose::Order), size, size);
    std::vector<std::uint64_t> values = all_values(permutation);
    std::sort(values.begin(), values.end());
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i) << "size " << size;
  }
}

TEST(KeyedPermutation, IsABijectionOfALargeRange) {
  constexpr std::uint64_t kSize = 1'000'003;
  const KeyedPermutation permutation(RandomFunction(3, Purpose::Order), 0, kSize);
  std::vector<bool> is_taken(kSize);
  for (std::uint64_t i = 0; i < kSize; ++i) {
    const std::uint64_t value = permutation(i);
    ASSERT_LT(value, kSize);
    ASSERT_FALSE(is_taken[value]) << "index " << i;
    is_taken[value] = true;
  }
}

// The halves of the network are as large as the range allows: values that overflowed would leave it or meet.
TEST(KeyedPermutation, KeepsNeighboursApartUpToTheLargestRange) {
  const RandomFunction random(3, Purpose::Order);
  for (const std::uint64_t size : {(std::uint64_t{1} << 40) + 12345, std::uint64_t{1} << 62}) {
    const KeyedPermutation permutation(random, 0, size);
    std::set<std::uint64_t> values;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      for (const std::uint64_t index : {i, size / 2 + i, size - 1 - i}) {
        const std::uint64_t value = permutation(index);
        ASSERT_LT(value, size);
        ASSERT_TRUE(values.insert(value).second) << "index " << index << " of " << size;
      }
    }
  }
}

TEST(KeyedPermutation, RefusesWhatIsOutsideTheRange) {
  const KeyedPermutation permutation(RandomFunction(1, Purpose::Order), 0, 10);
  EXPECT_THROW(permutation(10), InternalError);
  EXPECT_THROW(KeyedPermutation(RandomFunction(1, Purpose::Order), 0, (std::uint64_t{1} << 62) + 1),
               InternalError);
}

// All 24 orders of four elements come about equally often: chi-square with 23 degrees of freedom is below 60
// but for one key in 30,000.
TEST(KeyedPermutation, ReachesEveryOrderOfFourElementsEvenly) {
  std::map<std::vector<std::uint64_t>, int> seen;
  constexpr int kKeys = 24000;
  const RandomFunction random(11, Purpose::PackSlots);
  for (int key = 0; key < kKeys; ++key)
    ++seen[all_values(KeyedPermutation(random, static_cast<std::uint64_t>(key), 4))];
  EXPECT_EQ(seen.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : seen) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 60);
}

// Where element 0 and where neighbours land is spread evenly over a range that is no square.
TEST(KeyedPermutation, SpreadsElementsOverTheRange) {
  constexpr std::uint64_t kSize = 1009;
  const RandomFunction random(12, Purpose::Order);
  std::vector<int> where(10);
  std::vector<int> distance(10);
  for (std::uint64_t key = 0; key < 20000; ++key) {
    const KeyedPermutation permutation(random, key, kSize);
    ++where[permutation(0) * 10 / kSize];
    ++distance[(permutation(1) + kSize - permutation(0)) % kSize * 10 / kSize];
  }
  for (const int count : where) EXPECT_NEAR(count, 2000, 220);
  for (const int count : distance) EXPECT_NEAR(count, 2000, 220);
}

TEST(KeyedPermutation, IsFrozen) {
  EXPECT_EQ(all_values(KeyedPermutation(RandomFunction(42, Purpose::Order, 1), 0, 10)),
            (std::vector<std::uint64_t>{5, 1, 4, 8, 0, 7, 9, 6, 3, 2}));
}

}  // namespace
}  // namespace plenum::base
