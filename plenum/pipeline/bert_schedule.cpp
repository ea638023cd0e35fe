#include "plenum/pipeline/bert_schedule.h"

#include <algorithm>
#include <span>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/core/refreshes.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;
using schedule::Schedule;

namespace {

/// There is memory for one recomputed layer: its backward comes right behind its recomputation.
void require_recomputed_singly(const Schedule& schedule) {
  for (const schedule::RankProgram& rank : schedule.ranks) {
    const std::span<const Action> actions = rank.lane(schedule::Lane::Compute).actions();
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].type != ActionType::Recompute) continue;
      Action backward = actions[i];
      backward.type = ActionType::Backward;
      const bool is_single = actions[i].end_layer.index() == actions[i].first_layer.index() + 1;
      base::require(is_single && i + 1 < actions.size() && actions[i + 1] == backward,
                    "BERT trains with schedules that recompute a layer right before its backward, in one "
                    "piece; schedule {} "
                    "does not at {}",
                    schedule.name,
                    schedule::action_text(actions[i], schedule::StageLayers(schedule.problem)));
    }
  }
}

bool is_known(const Action& action, const Schedule& schedule, const schedule::StageLayers& layers) {
  switch (action.type) {
    case ActionType::Forward:
    case ActionType::Backward:
    case ActionType::InputGradient:
    case ActionType::WeightGradient:
    case ActionType::Recompute:
    case ActionType::SendActivation:
    case ActionType::ReceiveActivation:
    case ActionType::SendGradient:
    case ActionType::ReceiveGradient:
    case ActionType::ReduceGradient:
    case ActionType::ReduceScatterGradient:
    case ActionType::ReduceScatterRound:
    case ActionType::GatherParameters:
    case ActionType::GatherForward:
    case ActionType::GatherBackward:
    case ActionType::ReduceTensorNorms:
    case ActionType::Agree:
      return true;
    case ActionType::ReduceTied:
      return schedule.problem.has_tied_halves || schedule.num_stages() > 1;
    case ActionType::GatherTiedRows:
    case ActionType::ReduceTiedOutput:
    case ActionType::ReduceScatterTiedOutput:
    case ActionType::GatherTied:
      return schedule.problem.has_tied_halves;
    case ActionType::CurvatureA:
    case ActionType::CurvatureB:
    case ActionType::ReduceCurvature:
    case ActionType::Invert:
    case ActionType::InvertLayers:
      return schedule.problem.preconditioner == schedule::Preconditioner::Kfac;
    case ActionType::AccumulateFactor:
    case ActionType::InverseRoot:
      return schedule.problem.preconditioner == schedule::Preconditioner::Shampoo;
    case ActionType::Precondition:
    case ActionType::GatherPreconditioned:
      return schedule.problem.preconditioner != schedule::Preconditioner::None;
    case ActionType::SquareGradient:
    case ActionType::UpdateMoments:
    case ActionType::Update:
      return action.first_layer == layers.first(action.stage) && action.end_layer == layers.end(action.stage);
    default:
      return false;
  }
}

/// Shards are parts of what is reduced by itself, so that is what can be gathered.
void require_gathered_as_reduced(const Schedule& schedule) {
  for (const schedule::RankProgram& rank : schedule.ranks) {
    const std::span<const Action> actions = rank.lane(schedule::Lane::DataParallel).actions();
    for (const Action& gather : actions) {
      if (!schedule::is_gather(gather.type) || schedule::is_of_tied(gather.type) ||
          gather.type == ActionType::GatherPreconditioned)
        continue;
      const bool is_reduced = std::ranges::any_of(actions, [&](const Action& other) {
        return schedule::is_scatter(other.type) && other.first_layer == gather.first_layer &&
               other.end_layer == gather.end_layer;
      });
      base::require(is_reduced,
                    "BERT trains with schedules that gather the layers that they reduce; schedule {} gathers "
                    "{} to {}",
                    schedule.name, gather.first_layer.value, gather.end_layer.value);
    }
  }
}

/// A rank begins the gradient of a stage with its first micro-batch there.
void require_work_on_every_stage(const Schedule& schedule) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::span<const Action> actions = schedule.ranks[rank].lane(schedule::Lane::Compute).actions();
    for (const schedule::StageId stage : schedule.ranks[rank].stages) {
      const bool has_work = std::ranges::any_of(actions, [&](const Action& action) {
        return action.type == ActionType::Forward && action.stage == stage;
      });
      base::require(has_work,
                    "every rank needs a micro-batch for each stage that it holds; give more --micro-batches: "
                    "schedule {} has none for stage {} on rank {}",
                    schedule.name, stage.value, rank);
    }
  }
}

/// What ranks do not do together where each has a part of the model's layers.
void require_trainable_stages(const Schedule& schedule) {
  if (schedule.num_stages() == 1) return;
  base::require(!schedule::is_sharded(schedule.problem),
                "several stages train without sharding; leave it out, or use one stage: schedule {} has {}",
                schedule.name, schedule.num_stages());
  base::require(
      !schedule.problem.has_tied_halves,
      "several stages reduce the word table's gradient as a whole, not in halves: schedule {} has {}",
      schedule.name, schedule.num_stages());
}

/// Whether stages share the word table, as a model of tasks alone does not.
void require_tied_as_the_model(const Schedule& schedule, const describe::ModelConfig& model) {
  const bool is_tied = !model.task;
  base::require(
      is_tied || !schedule.problem.has_tied_parameters,
      "a model of a task has no word table that stages share; leave out tied parameters: schedule {}",
      schedule.name);
  base::require(!is_tied || schedule.num_stages() == 1 || schedule.problem.has_tied_parameters,
                "the first and the last stage share the word table, which the schedule must say (tied "
                "parameters): schedule {} has {} stages",
                schedule.name, schedule.num_stages());
}

/// Muon's and SOAP's work on matrices is actions of the schedule, or part of the update.
void require_divided(const Schedule& schedule, const BertProgramOptions& options) {
  if (!schedule::follows_agreement(schedule.problem.preconditioner)) return;
  const bool is_muon = schedule.problem.preconditioner == schedule::Preconditioner::Muon;
  const optim::OptimizerKind kind = is_muon ? optim::OptimizerKind::Muon : optim::OptimizerKind::Soap;
  base::require(options.optimizer.kind == kind, "schedule {} has the actions of another optimizer",
                schedule.name);
  base::require(options.device == tensor::Device::Cpu,
                "Muon's and SOAP's work on matrices is actions on the CPU alone so far; leave it to the "
                "update: schedule {}",
                schedule.name);
  // A piece begins with the basis as it is; another refresh would still change it.
  const schedule::Refreshes refreshes(schedule);
  base::require(
      is_muon || !refreshes.has_pieces() || refreshes.num_places() == 1,
      "SOAP's bases are refreshed in pieces where one refresh ends before the next begins; schedule "
      "{} has several under way",
      schedule.name);
}

void require_kfac(const Schedule& schedule, const BertProgramOptions& options) {
  const bool is_kfac = options.optimizer.kind == optim::OptimizerKind::Kfac;
  const bool has_kfac = schedule.problem.preconditioner == schedule::Preconditioner::Kfac;
  base::require(is_kfac == has_kfac,
                "K-FAC needs a schedule with its actions, and they need K-FAC: schedule {}", schedule.name);
  if (!is_kfac) return;
  base::require(options.tensor_parallel.size == 1,
                "K-FAC needs whole linear maps on a rank; leave out --tp, or choose another --optimizer");
  base::require(!schedule::is_sharded(schedule.problem),
                "K-FAC needs whole gradients on a rank; leave out --shard, or choose another --optimizer");
  base::require(!schedule.problem.has_tied_halves,
                "K-FAC does not go with a word table whose gradient is summed in halves");
}

}  // namespace

void require_bert_schedule(const Schedule& schedule, const BertProgramOptions& options) {
  const describe::ModelConfig& model = options.model;
  const schedule::StageLayers layers(schedule.problem);
  base::require(static_cast<std::int64_t>(layers.total()) == model.num_layers,
                "the schedule must have the model's layers: {} instead of {}", layers.total(),
                model.num_layers);
  require_trainable_stages(schedule);
  require_tied_as_the_model(schedule, model);
  require_work_on_every_stage(schedule);
  for (const schedule::RankProgram& rank : schedule.ranks) {
    for (const schedule::LaneProgram& lane : rank.lanes) {
      for (const Action& action : lane.actions()) {
        base::require(
            is_known(action, schedule, layers),
            "BERT trains with schedules without whole tied parameters of one stage; schedule {} has the "
            "action {}",
            schedule.name, schedule::traits_of(action.type).name);
      }
    }
  }
  base::require(
      !schedule.problem.has_tied_halves ||
          (schedule.ranks.size() > 1 && options.device == tensor::Device::Cpu),
      "the halves of the word table's gradient are reduced by themselves by several ranks on the CPU");
  const bool has_norms = options.optimizer.update_kind() == optim::OptimizerKind::Lamb;
  base::require(!schedule::is_sharded(schedule.problem) || schedule.ranks.size() == 1 ||
                    has_norms == schedule.problem.has_tensor_norms,
                "a sharded schedule sums the norms of tensors for LAMB, and for LAMB alone");
  require_kfac(schedule, options);
  require_divided(schedule, options);
  require_gathered_as_reduced(schedule);
  require_recomputed_singly(schedule);
}

}  // namespace plenum::pipeline
