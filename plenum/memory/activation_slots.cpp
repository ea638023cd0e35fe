#include "plenum/memory/activation_slots.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::memory {
namespace {

schedule::RankSlots slots_of(const schedule::Schedule& schedule, schedule::Rank rank) {
  base::check(schedule.num_stages() == 1, "there must be one stage: {}", schedule.num_stages());
  const schedule::Dataflow dataflow(schedule);
  // One stage has no messages.
  return {schedule::by_micro_batch(schedule::lifetimes(dataflow, rank, {}), dataflow.layers()),
          schedule.num_steps(), schedule::cycle_time(schedule, rank)};
}

bool reads_errors(const schedule::Action& action) {
  return action.type == schedule::ActionType::WeightGradient ||
         action.type == schedule::ActionType::CurvatureB;
}

}  // namespace

ActivationSlots::ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank)
    : slots_(slots_of(schedule, rank)),
      keeps_errors_(std::ranges::any_of(schedule.ranks[rank.index()].lane(schedule::Lane::Compute).actions(),
                                        reads_errors)) {}

}  // namespace plenum::memory
