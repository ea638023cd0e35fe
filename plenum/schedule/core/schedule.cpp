#include "plenum/schedule/core/schedule.h"

#include <algorithm>
#include <limits>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

constexpr std::size_t kMostLayers = std::numeric_limits<std::uint16_t>::max() - 1;

void require_placement(const Schedule& schedule) {
  std::vector<bool> is_held(schedule.num_stages(), false);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<StageId> stages = schedule.ranks[rank].stages;
    std::sort(stages.begin(), stages.end());
    base::require(std::adjacent_find(stages.begin(), stages.end()) == stages.end(),
                  "rank {} names a stage twice", rank);
    for (const StageId stage : stages) {
      base::require(stage.index() < schedule.num_stages(), "rank {} holds stage {}, but there are {} stages",
                    rank, stage.value, schedule.num_stages());
      is_held[stage.index()] = true;
    }
  }
  const auto orphan = std::find(is_held.begin(), is_held.end(), false);
  base::require(orphan == is_held.end(), "no rank holds stage {}", orphan - is_held.begin());
}

bool has_only_named_fields(const Action& action, const ActionTraits& traits) {
  Action expected{.type = action.type, .age = action.age};
  if (traits.has_stage) expected.stage = action.stage;
  if (traits.has_micro_batch) expected.micro_batch = action.micro_batch;
  if (traits.layers != ActionTraits::Layers::None) {
    expected.first_layer = action.first_layer;
    expected.end_layer = action.end_layer;
  }
  if (traits.has_factor) expected.factor = action.factor;
  expected.piece = action.piece;
  expected.num_pieces = action.num_pieces;
  return action == expected;
}

/// What a schedule of a few words may promise; then check() can name what is missing.
constexpr std::size_t kFewPromises = 1 << 14;

/// Readers keep an array entry for everything that a problem names, so a few words that promise billions of
/// micro-batches must not pass.
void require_enough_actions(const Schedule& schedule, std::size_t num_layers) {
  const Problem& problem = schedule.problem;
  const std::size_t num_actions = schedule.num_actions();
  const std::size_t most = std::max(num_actions, kFewPromises);
  const std::size_t num_forwards = schedule.num_stages() * problem.num_micro_batches;
  base::require(num_forwards <= most,
                "{} stages and {} micro-batches need at least {} actions, but there are {}",
                schedule.num_stages(), problem.num_micro_batches, num_forwards, num_actions);
  std::size_t num_statistics = num_layers * problem.num_factors;
  const bool covers_all = problem.preconditioner == Preconditioner::Kfac && !problem.has_partial_curvature;
  if (covers_all) num_statistics *= problem.num_micro_batches;
  base::require(num_statistics <= most, "{} factors of {} layers need at least {} actions, but there are {}",
                problem.num_factors, num_layers, num_statistics, num_actions);
}

}  // namespace

const char* reason_against(const Action& action, Lane lane, const RankProgram& rank, const Problem& problem,
                           const StageLayers& layers) {
  const ActionTraits& traits = traits_of(action.type);
  if (traits.lane != lane) return "it belongs into another lane";
  if (traits.has_stage) {
    if (action.stage.index() >= problem.stage_layers.size()) return "there is no such stage";
    if (std::find(rank.stages.begin(), rank.stages.end(), action.stage) == rank.stages.end()) {
      return "the rank does not hold this stage";
    }
  }
  if (traits.has_micro_batch && action.micro_batch.index() >= problem.num_micro_batches) {
    return "there is no such micro-batch";
  }
  if (traits.layers != ActionTraits::Layers::None) {
    if (action.first_layer >= action.end_layer || action.first_layer < layers.first(action.stage) ||
        action.end_layer > layers.end(action.stage)) {
      return "the layers are not the stage's";
    }
    if (traits.layers == ActionTraits::Layers::One &&
        action.end_layer.index() - action.first_layer.index() != 1) {
      return "it works on one layer";
    }
  }
  if (traits.has_factor && action.factor >= problem.num_factors) return "there is no such factor";
  if (action.age > problem.staleness) return "it is older than the schedule's staleness";
  if (!traits.may_be_stale && action.age != 0) return "actions of this type cannot be stale";
  if (action.num_pieces == 0 || action.piece >= action.num_pieces) return "there is no such piece";
  if (!traits.is_splittable && action.num_pieces != 1) return "actions of this type cannot be split";
  if (!has_only_named_fields(action, traits)) return "it names what its type does not have";
  return nullptr;
}

std::span<const Action> LaneProgram::step(std::size_t index) const {
  const std::size_t begin = step_begin(index);
  return std::span(actions_).subspan(begin, step_ends_[index] - begin);
}

std::size_t LaneProgram::step_of(std::size_t position) const {
  const auto end = std::upper_bound(step_ends_.begin(), step_ends_.end(), position);
  return static_cast<std::size_t>(end - step_ends_.begin());
}

std::size_t Schedule::num_actions() const {
  std::size_t count = 0;
  for (const RankProgram& rank : ranks) {
    for (const LaneProgram& lane : rank.lanes) count += lane.actions().size();
  }
  return count;
}

StageLayers::StageLayers(const Problem& problem) {
  begin_.push_back(0);
  for (const std::uint16_t layers : problem.stage_layers) begin_.push_back(begin_.back() + layers);
}

Action StageLayers::whole(ActionType type, StageId stage, MicroBatchId micro_batch) const {
  Action action{.type = type, .stage = stage, .micro_batch = micro_batch};
  if (traits_of(type).layers != ActionTraits::Layers::None) {
    action.first_layer = first(stage);
    action.end_layer = end(stage);
  }
  return action;
}

std::optional<Action> message_after(const Action& action, const StageLayers& layers) {
  const StageId stage = action.stage;
  if (action.type == ActionType::Forward && action.end_layer == layers.end(stage) &&
      stage.index() + 1 < layers.num_stages()) {
    return layers.whole(ActionType::SendActivation, stage, action.micro_batch);
  }
  const bool makes_input_gradient =
      action.type == ActionType::Backward || action.type == ActionType::InputGradient;
  if (makes_input_gradient && stage.value > 0 && action.first_layer == layers.first(stage)) {
    return layers.whole(ActionType::SendGradient, stage, action.micro_batch);
  }
  return std::nullopt;
}

void require_well_formed(const Problem& problem) {
  base::require(!problem.stage_layers.empty(), "a schedule needs at least one stage");
  base::require(problem.num_micro_batches > 0, "a schedule needs at least one micro-batch");
  std::size_t total = 0;
  for (std::size_t stage = 0; stage < problem.stage_layers.size(); ++stage) {
    base::require(problem.stage_layers[stage] > 0, "stage {} has no layers", stage);
    total += problem.stage_layers[stage];
  }
  base::require(problem.stage_layers.size() < kMostLayers && total <= kMostLayers,
                "a schedule holds at most {} layers: {}", kMostLayers, total);
  base::require(
      problem.micro_batch_sizes.empty() || problem.micro_batch_sizes.size() == problem.num_micro_batches,
      "there must be as many micro-batch sizes as micro-batches: {} and {}", problem.micro_batch_sizes.size(),
      problem.num_micro_batches);
  base::require((problem.preconditioner == Preconditioner::None) == (problem.num_factors == 0),
                "a preconditioner needs factors, and factors a preconditioner");
  base::require(!problem.has_partial_curvature || problem.preconditioner == Preconditioner::Kfac,
                "only the curvature of kfac can be partial");
  base::require(!problem.has_tied_halves || problem.has_tied_parameters,
                "there are no halves of a tied parameter without one");
  base::require(!problem.has_tied_halves || problem.stage_layers.size() == 1,
                "the halves of a tied parameter are reduced by themselves where every rank holds the whole "
                "model; there are {} stages",
                problem.stage_layers.size());
  base::require(!problem.has_tied_halves || problem.sharding <= Sharding::Optimizer,
                "the halves of a tied parameter are reduced by themselves where gradients are not sharded");
}

void require_placed_problem(const Schedule& schedule) {
  require_well_formed(schedule.problem);
  base::require(!schedule.ranks.empty(), "a schedule needs at least one rank");
  require_placement(schedule);
}

void require_well_formed(const Schedule& schedule) {
  require_placed_problem(schedule);
  const StageLayers layers(schedule.problem);
  const std::size_t num_steps = schedule.num_steps();
  base::require(num_steps > 0, "a schedule needs at least one step");
  require_enough_actions(schedule, layers.total());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const LaneProgram& program = schedule.ranks[rank].lanes[lane];
      const std::string_view name = lane_name(static_cast<Lane>(lane));
      base::require(program.num_steps() == num_steps, "rank {}, lane {} has {} steps, rank 0 has {}", rank,
                    name, program.num_steps(), num_steps);
      for (const Action& action : program.actions()) {
        const char* reason =
            reason_against(action, static_cast<Lane>(lane), schedule.ranks[rank], schedule.problem, layers);
        if (reason != nullptr) {
          base::fail("rank {}, lane {}, {}: {}", rank, name, action_text(action, layers), reason);
        }
      }
    }
  }
}

}  // namespace plenum::schedule
