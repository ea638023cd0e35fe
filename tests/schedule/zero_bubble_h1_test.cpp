#include <gtest/gtest.h>

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

TEST(ZeroBubbleH1, LeavesTheClosedFormOfTheBubble) {
  for (const std::size_t depth : {1, 2, 3, 4, 5, 8}) {
    for (const std::size_t num_micro_batches : {depth, depth + 1, 2 * depth, 3 * depth + 1}) {
      for (const LayerTimes times :
           {LayerTimes{1, 1, 1}, LayerTimes{1, 1.25, 0.75}, LayerTimes{1, 1, 0.5}, LayerTimes{1, 2, 1}}) {
        const GeneratorOptions options{
            .depth = depth, .num_micro_batches = num_micro_batches, .stage_layers = {2}};
        const double bubble = 2 * static_cast<double>(depth - 1) *
                              (times.forward + times.input_gradient - times.weight_gradient);
        const Simulation simulation = simulated("zb-h1", options, times);
        for (const double seconds : simulation.bubble_seconds) EXPECT_NEAR(seconds, bubble, 1e-9);
      }
    }
  }
}

TEST(ZeroBubbleH1, KeepsWhatTheFirstStageOfOneForwardOneBackwardKeeps) {
  for (const std::size_t num_micro_batches : {1, 2, 5, 11}) {
    const GeneratorOptions options{.depth = 5, .num_micro_batches = num_micro_batches, .stage_layers = {1}};
    const std::size_t most = peak_activations(generate("1f1b", options)).front();
    for (const std::size_t peak : peak_activations(generate("zb-h1", options))) EXPECT_EQ(peak, most);
  }
}

}  // namespace
}  // namespace plenum::schedule
