#include <gtest/gtest.h>

#include "plenum/schedule/generator.h"
#include "plenum/schedule/simulate.h"

namespace plenum::schedule {
namespace {

/// A layer's forward takes 1, its backward 2; all else is free.
class UnitCosts final : public CostModel {
 public:
  double seconds(Rank, const Action& action) const override {
    const double layers = action.end_layer.value - action.first_layer.value;
    if (action.type == ActionType::Forward || action.type == ActionType::Recompute) return layers;
    return action.type == ActionType::Backward ? 2 * layers : 0;
  }
  double latency_seconds(Rank, Rank) const override { return 0; }
};

TEST(Pipelines, TakeAsLongAsTheirClosedForm) {
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    for (const std::size_t depth : {1, 2, 4, 7}) {
      for (const std::size_t num_micro_batches : {1, 3, 8}) {
        for (const std::size_t num_replicas : {1, 2}) {
          const Schedule schedule = generator_named(name).generate({.depth = depth,
                                                                    .num_micro_batches = num_micro_batches,
                                                                    .num_replicas = num_replicas,
                                                                    .stage_layers = {3},
                                                                    .num_buckets = 2});
          require_well_formed(schedule);
          const Simulation simulation = simulate(schedule, UnitCosts());
          EXPECT_DOUBLE_EQ(simulation.step_seconds, 9.0 * static_cast<double>(num_micro_batches + depth - 1));
          for (const double bubble : simulation.bubble_seconds) {
            EXPECT_DOUBLE_EQ(bubble, 9.0 * static_cast<double>(depth - 1));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace plenum::schedule
