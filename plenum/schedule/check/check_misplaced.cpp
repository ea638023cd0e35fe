#include <algorithm>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"

namespace plenum::schedule {
namespace {

bool is_kfac_only(ActionType type) {
  return type == ActionType::CurvatureA || type == ActionType::CurvatureB ||
         type == ActionType::ReduceCurvature || type == ActionType::Invert ||
         type == ActionType::InvertLayers;
}

bool is_shampoo_only(ActionType type) {
  return type == ActionType::AccumulateFactor || type == ActionType::InverseRoot;
}

/// Why an action of this type has no place in a schedule of this problem; empty if it has.
std::string reason_by_problem(ActionType type, const Problem& problem) {
  const bool is_sharded = schedule::is_sharded(problem);
  switch (type) {
    case ActionType::ReduceGradient:
      if (is_sharded) return "the optimizer is sharded: gradients are reduced by RS, not AR";
      return {};
    case ActionType::ReduceScatterRound:
      if (problem.sharding < Sharding::Gradients) return "gradients are not sharded: no rounds are reduced";
      return {};
    case ActionType::GatherForward:
    case ActionType::GatherBackward:
      if (problem.sharding != Sharding::Parameters)
        return "parameters are not sharded: they are not gathered for a micro-batch";
      return {};
    case ActionType::ReduceScatterGradient:
      if (problem.sharding >= Sharding::Gradients) return "gradients are sharded: they are reduced by RR";
      [[fallthrough]];
    case ActionType::GatherParameters:
      if (!is_sharded) return "the schedule says nothing of sharding: gradients are reduced by AR";
      return {};
    case ActionType::UpdateMoments:
    case ActionType::ReduceTensorNorms:
      if (!problem.has_tensor_norms) return "the schedule has no norms of tensors";
      if (!is_sharded) return "the schedule says nothing of sharding: every holder has whole tensors";
      return {};
    case ActionType::ReduceTied:
      if (!problem.has_tied_parameters) return "the schedule has no tied parameter";
      return {};
    case ActionType::GatherTiedRows:
    case ActionType::ReduceTiedOutput:
    case ActionType::ReduceScatterTiedOutput:
    case ActionType::GatherTied:
      if (!problem.has_tied_halves) return "the schedule does not reduce halves of a tied parameter";
      if (type == ActionType::ReduceTiedOutput && is_sharded)
        return "the optimizer is sharded: the half is reduced by TS, not TO";
      if (type != ActionType::ReduceTiedOutput && type != ActionType::GatherTiedRows && !is_sharded)
        return "the schedule says nothing of sharding: the half is reduced by TO";
      return {};
    case ActionType::Precondition:
    case ActionType::GatherPreconditioned:
      if (problem.preconditioner == Preconditioner::None) return "the schedule has no preconditioner";
      return {};
    default:
      if (is_kfac_only(type) && problem.preconditioner != Preconditioner::Kfac) {
        return "the preconditioner is not kfac";
      }
      if (is_shampoo_only(type) && problem.preconditioner != Preconditioner::Shampoo) {
        return "the preconditioner is not shampoo";
      }
      return {};
  }
}

std::string reason_by_micro_batch(const Dataflow& dataflow, Rank rank, const Action& action) {
  const Rank runner = dataflow.runner(action.stage, action.micro_batch);
  if (runner.is_none()) {
    return fmt::format("no rank runs the forward of stage {} for micro-batch {}", action.stage.value,
                       action.micro_batch.value);
  }
  if (runner != rank) {
    return fmt::format("micro-batch {} passes stage {} on rank {}", action.micro_batch.value,
                       action.stage.value, runner.value);
  }
  if (traits_of(action.type).lane != Lane::Pipeline) return {};  // not a message
  const Action other = dataflow.counterpart(action);
  if (other.stage.index() >= dataflow.layers().num_stages()) return "the pipeline ends here";
  if (dataflow.peer(action) == rank) {
    return fmt::format("stage {} runs on the same rank: there is nothing to send or receive",
                       other.stage.value);
  }
  return {};
}

std::string reason_by_group(const Dataflow& dataflow, Rank rank, const Action& action) {
  const std::span<const Rank> group = dataflow.group(action);
  if (!std::binary_search(group.begin(), group.end(), rank)) return "the rank is not one of its group";
  const bool is_for_several = traits_of(action.type).has_stage || is_of_tied(action.type);
  if (is_for_several && group.size() == 1) return "no other rank has a part in it";
  return {};
}

std::string reason_by_round(const Dataflow& dataflow, Rank rank, const Action& action) {
  if (!dataflow.micro_batch_of_round(rank, action.stage, action.micro_batch).is_none()) return {};
  return fmt::format("the rank runs stage {} for fewer micro-batches: it has no round {}", action.stage.value,
                     action.micro_batch.value);
}

/// Of a stage whose parameters are gathered for every pass.
std::string reason_by_bucket(const Dataflow& dataflow, Rank rank, const Action& action) {
  if (!dataflow.gathers_rounds(action.stage)) return {};
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    const std::uint32_t bucket = dataflow.bucket(layer);
    const bool stays = bucket == dataflow.first_layers_bucket(action.stage);
    if (action.type == ActionType::GatherParameters && !stays)
      return fmt::format("layer {} is gathered for every micro-batch, by GF and GB", layer.value);
    if (action.type == ActionType::GatherParameters) continue;
    if (stays) return fmt::format("layer {} is gathered for the whole step, by AG", layer.value);
    if (!dataflow.needs_gather(rank, action, bucket))
      return fmt::format("the place of layer {} still has its parameters", layer.value);
  }
  return {};
}

std::string reason_against_place(const RuleContext& context, Rank rank, const Action& action) {
  const ActionTraits& traits = traits_of(action.type);
  const Dataflow& dataflow = context.dataflow;
  std::string reason = reason_by_problem(action.type, context.schedule.problem);
  if (!reason.empty()) return reason;
  if (counts_rounds(action.type)) {
    reason = reason_by_group(dataflow, rank, action);
    if (reason.empty()) reason = reason_by_round(dataflow, rank, action);
    return reason.empty() && is_gather(action.type) ? reason_by_bucket(dataflow, rank, action) : reason;
  }
  if (traits.has_micro_batch) return reason_by_micro_batch(dataflow, rank, action);
  const bool is_between_holders = traits.is_collective || action.type == ActionType::UpdateMoments;
  if (is_between_holders) {
    reason = reason_by_group(dataflow, rank, action);
    const bool gathers = reason.empty() && action.type == ActionType::GatherParameters;
    return gathers ? reason_by_bucket(dataflow, rank, action) : reason;
  }
  if (traits.has_factor) {
    const Rank owner = dataflow.owner(action.stage, action.first_layer, action.factor);
    if (owner != rank) {
      return fmt::format("factor {} of layer {} belongs to rank {}", action.factor, action.first_layer.value,
                         owner.value);
    }
  }
  return {};
}

}  // namespace

void find_misplaced(RuleContext& context) {
  for_each_action(context.schedule, [&](const ActionPlace& place, const Action& action) {
    std::string reason = reason_against_place(context, place.rank, action);
    if (!reason.empty()) context.add(place, std::move(reason));
  });
}

}  // namespace plenum::schedule
