#include "plenum/packing/pack_fillings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_problems.h"

namespace plenum::packing {
namespace {

using testing::ElementsAre;

/// Of the fillings that weigh at least `least_tokens` when a token weighs one.
std::vector<std::vector<std::int32_t>> fillings(const PackingProblem& problem, std::uint64_t least_tokens) {
  DualWeights weights{.weight_of_length = {}, .denominator = static_cast<std::uint64_t>(problem.capacity)};
  for (std::int64_t length = 0; length <= problem.capacity; ++length) {
    weights.weight_of_length.push_back(static_cast<std::uint64_t>(length));
  }
  std::vector<std::vector<std::int32_t>> lengths;
  const PackFillings::Found found =
      PackFillings(problem, weights).find(problem.histogram.counts, least_tokens);
  EXPECT_TRUE(found.all);
  for (const PackFillings::Filling& filling : found.fillings) lengths.push_back(filling.lengths);
  return lengths;
}

using Lengths = std::vector<std::int32_t>;

TEST(PackFillings, HoldTheLongestAndTakeNoFurtherSequence) {
  EXPECT_THAT(fillings(problem_of(10, 10, {{5, 1}, {3, 2}, {2, 2}}), 0),
              ElementsAre(Lengths{5, 3, 2}, Lengths{5, 2, 2}));
}

TEST(PackFillings, WeighEnough) {
  EXPECT_THAT(fillings(problem_of(10, 10, {{5, 1}, {3, 2}, {2, 2}}), 10), ElementsAre(Lengths{5, 3, 2}));
  EXPECT_THAT(fillings(problem_of(10, 10, {{7, 1}, {2, 2}}), 10), ElementsAre());
}

TEST(PackFillings, KeepTheDepth) {
  EXPECT_THAT(fillings(problem_of(10, 2, {{5, 2}, {3, 2}, {2, 2}}), 0),
              ElementsAre(Lengths{5, 5}, Lengths{5, 3}, Lengths{5, 2}));
}

TEST(PackFillings, SayWhenThereAreTooMany) {
  PackingProblem problem = problem_of(1000, 1000, {});
  for (std::size_t length = 1; length <= 100; ++length) problem.histogram.counts[length] = 100;
  const DualWeights weights{.weight_of_length = std::vector<std::uint64_t>(1001), .denominator = 1};
  EXPECT_FALSE(PackFillings(problem, weights).find(problem.histogram.counts, 0).all);
}

}  // namespace
}  // namespace plenum::packing
