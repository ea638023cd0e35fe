#include "plenum/memory/activation_slots.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/event_order.h"
#include "plenum/schedule/core/lifetimes.h"

namespace plenum::memory {
namespace {

using schedule::Action;
using schedule::ActionType;
using schedule::Lifetime;

/// Of all that a stage has of a micro-batch, for the stages of a rank.
std::vector<Lifetime> lifetimes_of(const schedule::Dataflow& dataflow, schedule::Rank rank) {
  schedule::MessageBounds bounds;
  if (dataflow.layers().num_stages() > 1) bounds = schedule::EventOrder(dataflow).message_bounds(rank);
  return schedule::by_micro_batch(schedule::lifetimes(dataflow, rank, bounds), dataflow.layers());
}

bool reads_errors(const Action& action) {
  return action.type == ActionType::WeightGradient || action.type == ActionType::CurvatureB;
}

}  // namespace

ActivationSlots::ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank) {
  const schedule::Dataflow dataflow(schedule);
  const schedule::RankProgram& program = schedule.ranks[rank.index()];
  const std::vector<Lifetime> all = lifetimes_of(dataflow, rank);
  for (const schedule::StageId stage : program.stages) {
    std::vector<Lifetime> of_stage;
    std::ranges::copy_if(all, std::back_inserter(of_stage),
                         [&](const Lifetime& life) { return life.tenant.stage == stage; });
    const schedule::LayerId first = dataflow.layers().first(stage);
    stages_.push_back({stage, first, {of_stage, schedule.num_steps(), schedule::cycle_time(schedule, rank)}});
    const auto sends = [&](const Action& action) {
      return action.type == ActionType::SendActivation && action.stage == stage;
    };
    request_.stages.push_back(
        {.layers = {first, dataflow.layers().end(stage)},
         .num_slots = stages_.back().slots.num_slots(schedule::TenantKind::Kept),
         .sends_output = std::ranges::any_of(program.lane(schedule::Lane::Pipeline).actions(), sends)});
  }
  request_.recompute = schedule.problem.recomputation;
  request_.keeps_errors = std::ranges::any_of(program.lane(schedule::Lane::Compute).actions(), reads_errors);
}

std::size_t ActivationSlots::stage_index(schedule::StageId stage) const {
  const auto found = std::ranges::find(stages_, stage, &StageSlots::stage);
  base::check(found != stages_.end(), "the rank does not hold stage {}", stage.value);
  return static_cast<std::size_t>(found - stages_.begin());
}

std::size_t ActivationSlots::slot(std::uint64_t step, schedule::StageId stage,
                                  schedule::MicroBatchId micro_batch) const {
  const StageSlots& of_stage = stages_[stage_index(stage)];
  return of_stage.slots.slot({.kind = schedule::TenantKind::Kept,
                              .stage = stage,
                              .micro_batch = micro_batch,
                              .layer = of_stage.first_layer},
                             step);
}

}  // namespace plenum::memory
