#include "plenum/data/batches/even_division.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/philox.h"

namespace plenum::data {
namespace {

double sum_of(const std::vector<double>& costs, const std::vector<std::size_t>& items) {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [&](double sum, std::size_t item) { return sum + costs[item]; });
}

TEST(DivideEvenly, GivesEveryItemToOneRankAndNoRankTooMany) {
  const base::RandomFunction random(1, base::Purpose::Holdout);
  for (std::size_t num_items = 0; num_items < 40; ++num_items) {
    for (std::size_t num_ranks = 1; num_ranks < 9; ++num_ranks) {
      std::vector<double> costs;
      for (std::size_t i = 0; i < num_items; ++i)
        costs.push_back(
            static_cast<double>(base::to_range(random(num_items, static_cast<std::uint32_t>(i)), 10)));
      std::vector<std::size_t> all;
      for (const std::vector<std::size_t>& items : divide_evenly(costs, num_ranks)) {
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

TEST(DivideEvenly, BalancesCostsOfRealisticLengths) {
  const base::RandomFunction random(2, base::Purpose::Holdout);
  std::vector<double> costs;
  for (std::uint32_t i = 0; i < 256; ++i) {
    const double length = 3 + 509 * base::to_unit_interval(random(0, i));
    costs.push_back(1000 * length + length * length);
  }
  const auto items_of = divide_evenly(costs, 4);
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (const std::vector<std::size_t>& items : items_of)
    EXPECT_NEAR(sum_of(costs, items), total / 4, total / 4 * 0.02);
}

/// Lengths as Wikipedia has them, cut at 512.
class WikipediaLengths {
 public:
  WikipediaLengths() {
    std::ifstream file(PLENUM_SOURCE_DIR "/tests/golden/wikipedia_512_histogram.txt");
    for (double count = 0; file >> count;)
      cumulative_.push_back((cumulative_.empty() ? 0 : cumulative_.back()) + count);
  }

  double draw(std::uint64_t batch, std::uint32_t index) const {
    const double at = base::to_unit_interval(random_(batch, index)) * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    return static_cast<double>(found - cumulative_.begin()) + 1;
  }

 private:
  base::RandomFunction random_{3, base::Purpose::Holdout};
  std::vector<double> cumulative_;
};

/// Operations of BERT-base: linear in tokens, quadratic in lengths.
double cost_of_length(double length) {
  return length * (24 * 768 + 4 * length);
}

/// How much more than the mean the rank has that has the most.
double excess(const std::vector<double>& costs, std::size_t num_ranks) {
  double most = 0;
  for (const std::vector<std::size_t>& items : divide_evenly(costs, num_ranks))
    most = std::max(most, sum_of(costs, items));
  return most * static_cast<double>(num_ranks) / std::accumulate(costs.begin(), costs.end(), 0.0) - 1;
}

TEST(DivideEvenly, LeavesNoRankAThousandthOverTheMeanOnWikipediaLengths) {
  const WikipediaLengths lengths;
  for (std::uint64_t batch = 0; batch < 50; ++batch) {
    std::vector<double> costs;
    for (std::uint32_t i = 0; i < 8 * 56; ++i) costs.push_back(cost_of_length(lengths.draw(batch, i)));
    EXPECT_LT(excess(costs, 8), 1e-3) << batch;
  }
}

TEST(DivideEvenly, LeavesNoRankAThousandthOverTheMeanWhereStepsArePacks) {
  const WikipediaLengths lengths;
  for (std::uint64_t batch = 0; batch < 50; ++batch) {
    std::vector<double> costs;
    std::uint32_t next = 0;
    for (std::uint32_t pack = 0; pack < 8 * 16; ++pack) {
      double cost = 0;
      for (double room = 512; room > 0;) {
        const double length = std::min(room, lengths.draw(batch, next++));
        cost += cost_of_length(length);
        room -= length;
      }
      costs.push_back(cost);
    }
    EXPECT_LT(excess(costs, 8), 1e-3) << batch;
  }
}

TEST(DivideEvenly, GivesEqualItemsInTurn) {
  const std::vector<double> costs(6, 1.0);
  const std::vector<std::vector<std::size_t>> expected = {{0, 3}, {1, 4}, {2, 5}};
  EXPECT_EQ(divide_evenly(costs, 3), expected);
}

TEST(DivideEvenly, GivesTheDearestOnlyWhatTheOthersCannotTake) {
  const std::vector<double> costs = {1, 1, 1, 9};
  const std::vector<std::vector<std::size_t>> expected = {{2, 3}, {0, 1}};
  EXPECT_EQ(divide_evenly(costs, 2), expected);
}

}  // namespace
}  // namespace plenum::data
