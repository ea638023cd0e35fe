#include "plenum/schedule/simulate/simulate.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

double busy_seconds(const LaneTimes& times) {
  double sum = 0;
  for (const ActionTime& time : times) sum += time.end - time.start;
  return sum;
}

}  // namespace

Simulation simulate(const Schedule& schedule, const CostModel& costs) {
  const Dataflow dataflow(schedule);
  Simulation simulation{.replay = replay(schedule, dataflow, costs, num_cycles_to_steady_state(dataflow))};
  if (!simulation.replay.blocked.empty()) {
    const BlockedAction& blocked = simulation.replay.blocked.front();
    const LaneProgram& lane = schedule.ranks[blocked.rank.index()].lane(blocked.lane);
    base::fail("the schedule does not run to its end: rank {} waits at {} for ever", blocked.rank.value,
               action_text(lane.actions()[blocked.position], dataflow.layers()));
  }
  simulation.critical_path = critical_path(schedule, dataflow, simulation.replay);
  const double cycle_seconds = simulation.replay.end - simulation.replay.begin;
  const auto num_steps = static_cast<double>(schedule.num_steps());
  simulation.step_seconds = cycle_seconds / num_steps;
  double busy = 0;
  for (const RankTimes& times : simulation.replay.times) {
    const double rank_busy = busy_seconds(times[static_cast<std::size_t>(Lane::Compute)]);
    busy += rank_busy;
    simulation.bubble_seconds.push_back(std::max(0.0, cycle_seconds - rank_busy) / num_steps);
  }
  const double rank_seconds = cycle_seconds * static_cast<double>(schedule.ranks.size());
  if (rank_seconds > 0) simulation.utilization = busy / rank_seconds;
  return simulation;
}

}  // namespace plenum::schedule
