#include "plenum/schedule/simulate/critical_path.h"

#include <gtest/gtest.h>

#include "plenum/schedule/core/action_text.h"

#include "tests/schedule/pipeline_figures.h"

namespace plenum::schedule {
namespace {

/// Everything takes time, and no two kinds of action the same, so that a chain cannot close by chance.
class UnevenCosts final : public CostModel {
 public:
  double seconds(Rank rank, const Action& action) const override {
    const double layers = std::max(1, action.end_layer.value - action.first_layer.value);
    const double factor = 1 + 0.37 * static_cast<double>(action.type) + 0.011 * rank.value;
    const bool receives = is_receive(action.type);
    return receives ? 0 : factor * layers;
  }
  double latency_seconds(Rank from, Rank to) const override { return 0.13 + 0.007 * (from.value + to.value); }
};

ActionTime time_of(const Simulation& simulation, const CriticalAction& place) {
  return simulation.replay.times[place.rank.index()][static_cast<std::size_t>(place.lane)][place.position];
}

double length_of(const Simulation& simulation) {
  double sum = 0;
  for (const CriticalAction& place : simulation.critical_path) {
    sum += time_of(simulation, place).end - time_of(simulation, place).start;
  }
  return sum;
}

TEST(CriticalPath, IsAsLongAsTheCycle) {
  for (const Generator& generator : all_generators()) {
    for (const std::size_t num_micro_batches : {1, 3, 8}) {
      for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
        const Schedule schedule =
            generate(generator.name, {.depth = generator.is_pipeline() ? 4u : 1u,
                                      .num_micro_batches = num_micro_batches,
                                      .num_replicas = generator.mesh == Mesh::OneRank ? 1u : 2u,
                                      .stage_layers = {3},
                                      .num_buckets = 2,
                                      .sharding = sharding,
                                      .has_tied_parameters = true});
        const UnevenCosts costs;
        const Simulation simulation = simulate(schedule, costs);
        ASSERT_FALSE(simulation.critical_path.empty());
        const double begin = time_of(simulation, simulation.critical_path.front()).start;
        const double end = time_of(simulation, simulation.critical_path.back()).end;
        EXPECT_EQ(end, simulation.replay.end) << generator.name;
        EXPECT_NEAR(length_of(simulation), end - begin, 1e-9) << generator.name;
        // The parameters are the only thing that a step takes from the one before.
        const Action& first = schedule.ranks[simulation.critical_path.front().rank.index()]
                                  .lane(simulation.critical_path.front().lane)
                                  .actions()[simulation.critical_path.front().position];
        EXPECT_EQ(first.type, ActionType::Forward) << generator.name;
        // It may begin before the last rank has ended the cycle before, never after.
        EXPECT_LE(begin, simulation.replay.begin) << generator.name;
      }
    }
  }
}

TEST(CriticalPath, GoesThroughMessagesAndCollectives) {
  const Schedule schedule = generate("1f1b", {.depth = 2, .num_micro_batches = 1, .stage_layers = {1}});
  const Simulation simulation = simulate(schedule, UnevenCosts());
  const StageLayers layers(schedule.problem);
  std::string text;
  for (const CriticalAction& place : simulation.critical_path) {
    const LaneProgram& lane = schedule.ranks[place.rank.index()].lane(place.lane);
    text +=
        std::to_string(place.rank.value) + ":" + action_text(lane.actions()[place.position], layers) + " ";
  }
  // The agreement waits for the first stage, the slower update of the second ends the step.
  EXPECT_EQ(text, "0:F0.0 1:RF1.0 1:F1.0 1:B1.0 0:RB0.0 0:B0.0 0:NS0 1:N 1:U1 ");
}

}  // namespace
}  // namespace plenum::schedule
