#include <gtest/gtest.h>

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

TEST(Gpipe, TakesAsLongAsItsClosedForm) {
  for (const std::size_t depth : {1, 2, 4, 7}) {
    for (const std::size_t num_micro_batches : {1, 3, 8}) {
      const GeneratorOptions options{
          .depth = depth, .num_micro_batches = num_micro_batches, .num_replicas = 2, .stage_layers = {3}};
      const Simulation simulation = simulate(generate("gpipe", options), UnitCosts());
      EXPECT_DOUBLE_EQ(simulation.step_seconds, 9.0 * static_cast<double>(num_micro_batches + depth - 1));
      for (const double bubble : simulation.bubble_seconds) {
        EXPECT_DOUBLE_EQ(bubble, 9.0 * static_cast<double>(depth - 1));
      }
      EXPECT_DOUBLE_EQ(simulation.utilization, static_cast<double>(num_micro_batches) /
                                                   static_cast<double>(num_micro_batches + depth - 1));
    }
  }
}

TEST(Gpipe, KeepsEveryMicroBatch) {
  const Schedule schedule = generate("gpipe", {.depth = 3, .num_micro_batches = 5, .stage_layers = {1}});
  EXPECT_EQ(peak_activations(schedule), std::vector<std::size_t>({5, 5, 5}));
}

TEST(Gpipe, PaysAForwardForEveryRecomputation) {
  const GeneratorOptions options{
      .depth = 4, .num_micro_batches = 6, .stage_layers = {1}, .recomputation = Recomputation::Full};
  // The recomputation of the last stage's first micro-batch can begin as soon as its forwards are over; the
  // others' run before their gradient arrives where they would only wait.
  EXPECT_DOUBLE_EQ(step_seconds("gpipe", options), 6 * 4 + 3 * 3);
}

}  // namespace
}  // namespace plenum::schedule
