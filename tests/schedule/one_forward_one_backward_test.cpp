#include <gtest/gtest.h>

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

TEST(OneForwardOneBackward, TakesAsLongAsGpipe) {
  for (const std::size_t depth : {1, 2, 4, 7}) {
    for (const std::size_t num_micro_batches : {1, 3, 8}) {
      const GeneratorOptions options{
          .depth = depth, .num_micro_batches = num_micro_batches, .num_replicas = 2, .stage_layers = {3}};
      const Simulation simulation = simulate(generate("1f1b", options), UnitCosts());
      EXPECT_DOUBLE_EQ(simulation.step_seconds, 9.0 * static_cast<double>(num_micro_batches + depth - 1));
      for (const double bubble : simulation.bubble_seconds) {
        EXPECT_DOUBLE_EQ(bubble, 9.0 * static_cast<double>(depth - 1));
      }
    }
  }
}

TEST(OneForwardOneBackward, KeepsAsManyMicroBatchesAsThereAreStagesFromItsOwn) {
  for (const std::size_t num_micro_batches : {1, 2, 3, 5, 9}) {
    const std::size_t depth = 5;
    const Schedule schedule =
        generate("1f1b", {.depth = depth, .num_micro_batches = num_micro_batches, .stage_layers = {1}});
    const std::vector<std::size_t> peaks = peak_activations(schedule);
    for (std::size_t stage = 0; stage < depth; ++stage) {
      EXPECT_EQ(peaks[stage], std::min(num_micro_batches, depth - stage)) << stage;
    }
  }
}

}  // namespace
}  // namespace plenum::schedule
