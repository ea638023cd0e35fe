#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/simulate/replay.h"

/// The rules behind check(), each in a file of its own. Rules but the first may rely on those before them.
namespace plenum::schedule {

/// Where an action stands in the cycle.
struct ActionPlace {
  std::size_t step = 0;
  Rank rank;
  Lane lane = Lane::Compute;
  std::size_t position = 0;  ///< in LaneProgram::actions(); the end of the step's part if an action lacks
};

/// A rule that is broken, and where.
struct Finding {
  ActionPlace place;
  std::string why;
};

/// What the rules look at. Stops taking findings when there are enough of them.
struct RuleContext {
  const Schedule& schedule;
  const Dataflow& dataflow;
  std::vector<Finding> findings = {};

  static constexpr std::size_t kMostFindings = 100;
  bool is_full() const { return findings.size() >= kMostFindings; }
  void add(const ActionPlace& place, std::string why) {
    if (!is_full()) findings.push_back({place, std::move(why)});
  }
};

/// Calls visit(ActionPlace, const Action&) for the actions of a lane in one step.
template <typename Visit>
void for_each_action_of(const Schedule& schedule, Rank rank, Lane lane, std::size_t step, Visit visit) {
  const LaneProgram& program = schedule.ranks[rank.index()].lane(lane);
  ActionPlace place{step, rank, lane, program.step_begin(step)};
  for (const Action& action : program.step(step)) {
    visit(std::as_const(place), action);
    ++place.position;
  }
}

/// Calls visit(ActionPlace, const Action&) for the actions of a rank: lane by lane, then by position.
template <typename Visit>
void for_each_action_of(const Schedule& schedule, Rank rank, Visit visit) {
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
      for_each_action_of(schedule, rank, static_cast<Lane>(lane), step, visit);
    }
  }
}

/// Calls visit(ActionPlace, const Action&) for every action of the cycle: step by step, then by rank, lane
/// and position.
template <typename Visit>
void for_each_action(const Schedule& schedule, Visit visit) {
  for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        for_each_action_of(schedule, Rank::at(rank), static_cast<Lane>(lane), step, visit);
      }
    }
  }
}

/// The step of the cycle, from 0 to num_steps - 1, whose values an action of age `age` in `step` works on.
std::size_t data_step(std::size_t step, std::size_t age, std::size_t num_steps);

/// An action that makes a value.
struct Maker {
  ActionPlace place;
  std::size_t age = 0;  ///< of the value when it is made
};

/// For each of the values that an action in `step` of the cycle reads or makes on a rank: who makes it, the
/// first in the order of lanes and positions; nothing if nobody does.
std::vector<std::optional<Maker>> find_makers(const RuleContext& context, Rank rank, std::size_t step,
                                              std::span<const ValueRef> values);

/// "rank 2, compute, step 0, B2.1".
std::string describe_place(const RuleContext& context, const ActionPlace& place);
/// "B2.1 on rank 2".
std::string describe_action(const RuleContext& context, const ActionPlace& place);

/// Actions that have no business where they stand: of another preconditioner, sharding or tying than the
/// problem's, messages that go nowhere, work on a rank that does not run the micro-batch or own the factor.
void find_misplaced(RuleContext& context);
/// Values that are made twice, and pieces that do not fit together.
void find_duplicates(RuleContext& context);
/// Micro-batches that no rank runs, layers that are not updated, steps in which the ranks do not agree.
void find_omissions(RuleContext& context);
/// Sends without a receive in the same step, and receives without a send.
void find_unmatched_messages(RuleContext& context);
/// Collectives in which a rank of the group does not take part in the same step.
void find_incomplete_groups(RuleContext& context);
/// Receives that stand in another order than the sends of their messages: at most one of each rank and step.
/// Sends and receives must match.
void find_reordered_messages(RuleContext& context);
/// An order of messages in which the schedule runs: the first lane that must change, from the first action
/// on that does, "rank 1, pipe, step 0: RF1.0 SB1.0 …". Empty if no order of the pipeline lanes alone helps.
std::string accepted_message_order(const RuleContext& context);
/// Says why a replay did not come to its end: the action whose input nothing makes, messages that stand in
/// another order at one end than at the other, or one of the actions that wait for each other. Where another
/// order of messages would do, says which.
void explain_blocked(RuleContext& context, const std::vector<BlockedAction>& blocked);

}  // namespace plenum::schedule
