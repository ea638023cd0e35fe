#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

TEST(Interleaved, DividesTheBubbleByTheNumberOfChunks) {
  for (const std::size_t depth : {1, 2, 3, 4, 5}) {
    for (const std::size_t num_chunks : {1, 2, 3, 4}) {
      for (std::size_t num_micro_batches = depth; num_micro_batches <= 3 * depth + 1; ++num_micro_batches) {
        const GeneratorOptions options{.depth = depth,
                                       .num_micro_batches = num_micro_batches,
                                       .stage_layers = {1},
                                       .num_chunks = num_chunks};
        const Simulation simulation = simulate(generate("interleaved", options), UnitCosts());
        // A chunk's forward and backward take 3; the bubble in these is D - 1, though a rank has v of them.
        EXPECT_DOUBLE_EQ(simulation.step_seconds,
                         3.0 * static_cast<double>(num_micro_batches * num_chunks + depth - 1));
        for (const double bubble : simulation.bubble_seconds) {
          EXPECT_DOUBLE_EQ(bubble, 3.0 * static_cast<double>(depth - 1));
        }
      }
    }
  }
}

TEST(Interleaved, TakesAsLongAsOneMicroBatchAndOneMoreForEachWhenTheyAreFew) {
  for (const std::size_t num_micro_batches : {1, 2, 3, 4}) {
    const GeneratorOptions options{
        .depth = 4, .num_micro_batches = num_micro_batches, .stage_layers = {1}, .num_chunks = 3};
    EXPECT_DOUBLE_EQ(step_seconds("interleaved", options),
                     3.0 * static_cast<double>(4 * 3 + num_micro_batches - 1));
  }
}

TEST(Interleaved, KeepsTheChunksOfItsWarmUpAndOne) {
  const std::size_t depth = 4;
  for (const std::size_t num_chunks : {2, 3}) {
    for (const std::size_t num_micro_batches : {4, 8, 12}) {
      const Schedule schedule = generate("interleaved", {.depth = depth,
                                                         .num_micro_batches = num_micro_batches,
                                                         .stage_layers = {1},
                                                         .num_chunks = num_chunks});
      const std::vector<std::size_t> peaks = peak_activations(schedule);
      for (std::size_t position = 0; position < depth; ++position) {
        EXPECT_EQ(peaks[position], std::min(num_micro_batches * num_chunks,
                                            2 * (depth - 1 - position) + (num_chunks - 1) * depth + 1));
      }
    }
  }
}

TEST(Interleaved, DividesTheLayersOfARankOverItsChunks) {
  const std::vector<std::uint16_t> stage_layers = divide_over_chunks(std::vector<std::uint16_t>{7, 3}, 3);
  EXPECT_EQ(stage_layers, std::vector<std::uint16_t>({3, 1, 2, 1, 2, 1}));
  const Schedule schedule = generate(
      "interleaved", {.depth = 2, .num_micro_batches = 2, .stage_layers = stage_layers, .num_chunks = 3});
  EXPECT_EQ(schedule.ranks[1].stages, std::vector<StageId>({{1}, {3}, {5}}));
}

TEST(Interleaved, RefusesARankWithFewerLayersThanChunks) {
  EXPECT_THROW(divide_over_chunks(std::vector<std::uint16_t>{3, 1}, 2), base::UserError);
  EXPECT_THROW(generate("interleaved", {.depth = 2, .stage_layers = {3, 1}, .num_chunks = 2}),
               base::UserError);
  EXPECT_THROW(generate("interleaved", {.depth = 2, .stage_layers = {1}, .num_chunks = 0}), base::UserError);
}

}  // namespace
}  // namespace plenum::schedule
