#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

constexpr double as_double(std::size_t count) {
  return static_cast<double>(count);
}

TEST(Chimera, WaitsOnlyForBackwardsWithAsManyMicroBatchesAsStages) {
  for (const std::size_t depth : {2, 4, 6, 8, 16}) {
    for (const double backward : {1.0, 1.5, 1.69, 2.0, 3.0}) {
      const GeneratorOptions options{.depth = depth, .num_micro_batches = depth, .stage_layers = {1}};
      EXPECT_NEAR(step_seconds("chimera", options, {1, backward / 2, backward / 2}),
                  as_double(depth) + as_double(2 * depth - 2) * backward, 1e-9);
    }
  }
}

TEST(Chimera, HalvesTheBubbleOfOneForwardOneBackwardWithMoreMicroBatches) {
  for (const std::size_t depth : {2, 4, 6, 8, 16}) {
    for (const std::size_t num_rounds : {2, 3, 4, 7}) {
      const std::size_t num_micro_batches = num_rounds * depth;
      GeneratorOptions options{.depth = depth, .num_micro_batches = num_micro_batches, .stage_layers = {1}};
      EXPECT_DOUBLE_EQ(step_seconds("chimera", options), 3 * as_double(num_micro_batches + depth / 2 - 1));
      options.recomputation = Recomputation::Full;
      // The recomputation of a backward runs before its gradient arrives: the bubble has no part in it.
      EXPECT_LE(step_seconds("chimera", options), 4 * as_double(num_micro_batches + depth / 2 - 1));
    }
  }
}

TEST(Chimera, IsNeverSlowerThanTheBubbleOfOneRound) {
  for (const std::size_t depth : {2, 4, 6, 8}) {
    for (std::size_t num_micro_batches = 2; num_micro_batches <= 3 * depth; num_micro_batches += 2) {
      const GeneratorOptions options{
          .depth = depth, .num_micro_batches = num_micro_batches, .stage_layers = {1}};
      EXPECT_LE(step_seconds("chimera", options),
                as_double(num_micro_batches) + 2 * as_double(std::max(num_micro_batches, depth) + depth - 2) +
                    (num_micro_batches < depth ? as_double(depth - num_micro_batches) : 0));
    }
  }
}

TEST(Chimera, KeepsAtMostOneMicroBatchPerStageInOneRound) {
  for (const std::size_t depth : {2, 4, 6, 8, 16}) {
    const std::vector<std::size_t> peaks = peak_activations(
        generate("chimera", {.depth = depth, .num_micro_batches = depth, .stage_layers = {1}}));
    for (std::size_t position = 0; position < depth / 2; ++position) {
      EXPECT_EQ(peaks[position], peaks[depth - 1 - position]);
      EXPECT_GE(peaks[position], depth / 2 + 1);
      EXPECT_LE(peaks[position], depth);
    }
    const Schedule longer =
        generate("chimera", {.depth = depth, .num_micro_batches = 5 * depth, .stage_layers = {1}});
    for (const std::size_t peak : peak_activations(longer)) EXPECT_LT(2 * peak, 3 * depth);
  }
}

TEST(Chimera, HoldsEveryStageOnTwoRanksOfAReplica) {
  const Schedule schedule = generate(
      "chimera", {.depth = 4, .num_micro_batches = 3, .num_replicas = 2, .stage_layers = {1, 2, 3, 4}});
  EXPECT_EQ(schedule.ranks[6].stages, std::vector<StageId>({{1}, {2}}));
  const Dataflow dataflow(schedule);
  const std::span<const Rank> holders = dataflow.holders({1});
  EXPECT_EQ(std::vector<Rank>(holders.begin(), holders.end()), std::vector<Rank>({{1}, {2}, {5}, {6}}));
  // The larger half goes down.
  EXPECT_EQ(dataflow.runner({1}, {0}), Rank{1});
  EXPECT_EQ(dataflow.runner({1}, {1}), Rank{1});
  EXPECT_EQ(dataflow.runner({1}, {2}), Rank{2});
  EXPECT_EQ(dataflow.runner({1}, {5}), Rank{6});
}

TEST(Chimera, RefusesAnOddNumberOfStages) {
  EXPECT_THROW(generate("chimera", {.depth = 3, .stage_layers = {1}}), base::UserError);
}

}  // namespace
}  // namespace plenum::schedule
