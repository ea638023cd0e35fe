#include "plenum/memory/activation_slots.h"

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

}  // namespace

ActivationSlots::ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank)
    : slots_(slots_of(schedule, rank)) {}

}  // namespace plenum::memory
