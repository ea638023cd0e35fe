#include "plenum/schedule/simulate/issue_order.h"

#include <algorithm>
#include <tuple>

#include "plenum/schedule/simulate/replay.h"
#include "plenum/schedule/simulate/usual_costs.h"

namespace plenum::schedule {
namespace {

struct Issue {
  std::size_t step = 0;
  double start = 0;
  Action shared;  ///< the same on all ranks that have a part in it
  IssuedAction own;

  /// Nothing of a step needs what a later step does. Within one, what leads to something else starts earlier.
  friend bool operator<(const Issue& a, const Issue& b) {
    const auto key = [](const Issue& issue) {
      const Action& s = issue.shared;
      return std::tuple(issue.step, issue.start, s.type, s.stage, s.micro_batch, s.first_layer, s.factor,
                        s.age);
    };
    return key(a) < key(b);
  }
};

std::vector<IssuedAction> order_of(const Dataflow& dataflow, const RankProgram& program,
                                   const RankTimes& times) {
  std::vector<Issue> issues;
  for (const Lane lane : {Lane::DataParallel, Lane::Pipeline, Lane::Copy}) {
    const LaneProgram& own = program.lane(lane);
    for (std::size_t step = 0; step < own.num_steps(); ++step) {
      for (std::size_t i = own.step_begin(step); i < own.step_end(step); ++i) {
        const Action& action = own.actions()[i];
        issues.push_back({.step = step,
                          .start = times[static_cast<std::size_t>(lane)][i].start,
                          .shared = is_receive(action.type) ? dataflow.counterpart(action) : action,
                          .own = {lane, i}});
      }
    }
  }
  std::sort(issues.begin(), issues.end());
  std::vector<IssuedAction> order;
  for (const Issue& issue : issues) order.push_back(issue.own);
  return order;
}

}  // namespace

std::optional<std::vector<std::vector<IssuedAction>>> issue_order(const Schedule& schedule) {
  const Dataflow dataflow(schedule);
  const ReplayResult result =
      replay(schedule, dataflow, UsualCosts(schedule.problem), num_cycles_to_steady_state(dataflow));
  if (!result.blocked.empty()) return std::nullopt;
  std::vector<std::vector<IssuedAction>> orders;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    orders.push_back(order_of(dataflow, schedule.ranks[rank], result.times[rank]));
  }
  return orders;
}

}  // namespace plenum::schedule
