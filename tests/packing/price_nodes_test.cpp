#include "plenum/packing/price_nodes.h"

#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

TEST(PriceNodes, SharesDemandBetweenTheNodesOnBothSides) {
  const PriceNodes nodes(problem_of(20, 20, {{2, 5}, {4, 8}, {10, 3}}), {2, 10});
  EXPECT_DOUBLE_EQ(nodes.demand()[0], 5 + 8 * 0.75);
  EXPECT_DOUBLE_EQ(nodes.demand()[1], 3 + 8 * 0.25);
}

TEST(PriceNodes, AreExactWhenEveryLengthIsANode) {
  const PackingProblem problem = problem_of(20, 20, {{2, 5}, {4, 8}, {10, 3}});
  const PriceNodes nodes(problem, lengths_that_occur(problem.histogram));
  EXPECT_EQ(nodes.usable(), (std::vector<std::int32_t>{2, 4, 10}));
  EXPECT_EQ(nodes.demand(), (std::vector<double>{5, 8, 3}));
  EXPECT_EQ(nodes.interpolate(std::vector<double>{0.1, 0.2, 0.5})[9], 0);
}

TEST(PriceNodes, InterpolateLinearlyWhereLengthsOccurBetween) {
  const PriceNodes nodes(problem_of(20, 20, {{2, 5}, {4, 8}, {10, 3}}), {2, 10});
  const std::vector<double> prices = nodes.interpolate(std::vector<double>{0.1, 0.5});
  EXPECT_DOUBLE_EQ(prices[2], 0.1);
  EXPECT_DOUBLE_EQ(prices[6], 0.3);
  EXPECT_DOUBLE_EQ(prices[10], 0.5);
  EXPECT_EQ(prices[1], 0);
  EXPECT_EQ(prices[11], 0);
}

TEST(PriceNodes, RoundALengthDownWhereNoneOccursBetween) {
  const PriceNodes nodes(problem_of(20, 20, {{2, 5}, {10, 3}}), {2, 10});
  std::vector<SparseEntry> column;
  nodes.spread(std::vector<std::int32_t>{9, 1}, column);
  ASSERT_EQ(column.size(), 1u);
  EXPECT_EQ(column[0].index, 0);
  EXPECT_EQ(column[0].value, 1);
}

TEST(PriceNodes, SpreadAPatternOntoEachNodeOnceAtTheSameWorth) {
  std::mt19937 random(21);
  PackingProblem problem = problem_of(60, 60, {});
  for (std::size_t length = 3; length <= 40; ++length) problem.histogram.counts[length] = 1;
  const PriceNodes nodes(problem, {3, 4, 11, 12, 25, 40});
  const std::vector<double> node_prices{0.05, 0.07, 0.2, 0.4, 0.41, 1};
  const std::vector<double> prices = nodes.interpolate(node_prices);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::int32_t> pattern(1 + random() % 6);
    for (std::int32_t& length : pattern) length = 3 + static_cast<std::int32_t>(random() % 38);
    std::sort(pattern.begin(), pattern.end(), std::greater<>());
    std::vector<SparseEntry> column;
    nodes.spread(pattern, column);
    std::map<std::int32_t, double> by_node;
    double worth = 0;
    for (const SparseEntry& entry : column) {
      EXPECT_TRUE(by_node.emplace(entry.index, entry.value).second) << "node " << entry.index << " twice";
      worth += entry.value * node_prices[static_cast<std::size_t>(entry.index)];
    }
    double expected = 0;
    for (const std::int32_t length : pattern) expected += prices[static_cast<std::size_t>(length)];
    EXPECT_NEAR(worth, expected, 1e-12);
  }
}

TEST(PriceNodes, RejectALengthBeyondTheLastNode) {
  EXPECT_THROW(PriceNodes(problem_of(20, 20, {{2, 5}, {10, 3}}), {2}), base::InternalError);
}

}  // namespace
}  // namespace plenum::packing
