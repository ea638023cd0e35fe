#include "plenum/schedule/simulate/simulate.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

/// Stages that differ, and messages, reductions and updates that take their time.
class UnevenStages final : public CostModel {
 public:
  explicit UnevenStages(double collective_seconds) : collective_seconds_(collective_seconds) {}

  double seconds(Rank rank, const Action& action) const override {
    if (traits_of(action.type).is_collective) return collective_seconds_;
    if (traits_of(action.type).lane == Lane::Pipeline) return 0.25;
    const double layers = action.end_layer.value - action.first_layer.value;
    return layers * (action.type == ActionType::Forward ? 1.0 : 1.75) * (1 + (rank.value * 7 % 4) * 0.5);
  }
  double latency_seconds(Rank, Rank) const override { return 0.125; }

 private:
  double collective_seconds_;
};

TEST(Simulate, GivesTheStepTimeOfALongRun) {
  for (const Generator& generator : all_generators()) {
    const Schedule schedule =
        generate(generator.name, {.depth = generator.is_pipeline() ? 4u : 1u,
                                  .num_micro_batches = 5,
                                  .num_replicas = generator.mesh == Mesh::OneRank ? 1u : 2u,
                                  .stage_layers = {2},
                                  .num_buckets = 2,
                                  .sharding = Sharding::Optimizer});
    for (const double collective_seconds : {0.5, 9.0}) {
      const UnevenStages costs(collective_seconds);
      const Dataflow dataflow(schedule);
      const double long_run =
          (replay(schedule, dataflow, costs, 30).end - replay(schedule, dataflow, costs, 10).end) / 20;
      EXPECT_NEAR(simulate(schedule, costs).step_seconds, long_run, 1e-9)
          << generator.name << " " << collective_seconds;
    }
  }
}

TEST(Simulate, RefusesWhatDoesNotRunToItsEnd) {
  Schedule schedule = generate("1f1b", {.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  LaneProgram nothing;
  nothing.end_step();
  schedule.ranks[0].lane(Lane::Pipeline) = nothing;
  try {
    simulate(schedule, UnitCosts());
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "the schedule does not run to its end: rank 0 waits at B0.0 for ever");
  }
}

}  // namespace
}  // namespace plenum::schedule
