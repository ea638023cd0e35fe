#include "plenum/data/batches/rank_division.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "plenum/base/philox.h"

namespace plenum::data {
namespace {

double sum_of(const std::vector<double>& costs, const std::vector<std::size_t>& items) {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [&](double sum, std::size_t item) { return sum + costs[item]; });
}

TEST(DivideAmongRanks, GivesEveryItemToOneRankAndNoRankTooMany) {
  const base::RandomFunction random(1, base::Purpose::Holdout);
  for (std::size_t num_items = 0; num_items < 40; ++num_items) {
    for (std::size_t num_ranks = 1; num_ranks < 9; ++num_ranks) {
      std::vector<double> costs;
      for (std::size_t i = 0; i < num_items; ++i)
        costs.push_back(
            static_cast<double>(base::to_range(random(num_items, static_cast<std::uint32_t>(i)), 10)));
      std::vector<std::size_t> all;
      for (const std::vector<std::size_t>& items : divide_among_ranks(costs, num_ranks)) {
        EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
        EXPECT_LE(items.size(), (num_items + num_ranks - 1) / num_ranks);
        all.insert(all.end(), items.begin(), items.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<std::size_t> expected(num_items);
      std::iota(expected.begin(), expected.end(), std::size_t{0});
      EXPECT_EQ(all, expected);
    }
  }
}

TEST(DivideAmongRanks, BalancesCostsOfRealisticLengths) {
  const base::RandomFunction random(2, base::Purpose::Holdout);
  std::vector<double> costs;
  for (std::uint32_t i = 0; i < 256; ++i) {
    const double length = 3 + 509 * base::to_unit_interval(random(0, i));
    costs.push_back(1000 * length + length * length);
  }
  const auto items_of = divide_among_ranks(costs, 4);
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (const std::vector<std::size_t>& items : items_of)
    EXPECT_NEAR(sum_of(costs, items), total / 4, total / 4 * 0.02);
}

TEST(DivideAmongRanks, GivesEqualItemsInTurn) {
  const std::vector<double> costs(6, 1.0);
  const std::vector<std::vector<std::size_t>> expected = {{0, 3}, {1, 4}, {2, 5}};
  EXPECT_EQ(divide_among_ranks(costs, 3), expected);
}

TEST(DivideAmongRanks, GivesTheDearestOnlyWhatTheOthersCannotTake) {
  const std::vector<double> costs = {1, 1, 1, 9};
  const std::vector<std::vector<std::size_t>> expected = {{2, 3}, {0, 1}};
  EXPECT_EQ(divide_among_ranks(costs, 2), expected);
}

}  // namespace
}  // namespace plenum::data
