#include "tests/pipeline/schedule_mutation.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

/// A lane that can be changed anywhere: its steps as lists.
using Steps = std::vector<std::vector<Action>>;

Steps steps_of(const LaneProgram& lane) {
  Steps steps;
  for (std::size_t step = 0; step < lane.num_steps(); ++step) {
    steps.emplace_back(lane.step(step).begin(), lane.step(step).end());
  }
  return steps;
}

LaneProgram lane_of(const Steps& steps) {
  LaneProgram lane;
  for (const std::vector<Action>& step : steps) {
    for (const Action& action : step) lane.append(action);
    lane.end_step();
  }
  return lane;
}

struct Spot {
  std::size_t rank = 0;
  std::size_t lane = 0;
  std::size_t step = 0;
  std::size_t position = 0;  ///< in the step
};

class Mutation {
 public:
  Mutation(const Schedule& original, std::mt19937_64& random)
      : schedule_(original), layers_(original.problem), random_(random) {
    for (const RankProgram& rank : original.ranks) {
      std::vector<Steps>& lanes = ranks_.emplace_back();
      for (const LaneProgram& lane : rank.lanes) lanes.push_back(steps_of(lane));
    }
  }

  void damage() {
    const Spot spot = any_spot();
    const Action action = at(spot);
    const std::size_t kind = below(8);
    switch (kind) {
      case 0:
        note("drop", spot);
        remove(spot);
        break;
      case 1:
        note("duplicate", spot);
        insert(place_in_lane(spot), action);
        break;
      case 2: {
        note("swap", spot);
        const Spot other = any_spot_in_lane(spot);
        note("with", other);
        std::swap(at(spot), at(other));
        break;
      }
      case 3:
      case 4:
        note("move", spot);
        remove(spot);
        insert(place_in_lane(spot), action);
        break;
      case 5:
        note("retarget", spot);
        at(spot) = retargeted(action);
        break;
      case 6:
        note("move to another rank", spot);
        remove(spot);
        insert(place_in_lane({below(ranks_.size()), spot.lane, spot.step, 0}), action);
        break;
      default:
        note("everywhere", spot);
        damage_everywhere(action, spot.lane);
    }
  }

  Mutant finish() && {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        schedule_.ranks[rank].lanes[lane] = lane_of(ranks_[rank][lane]);
      }
    }
    return {std::move(schedule_), std::move(damage_)};
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  Action& at(const Spot& spot) { return ranks_[spot.rank][spot.lane][spot.step][spot.position]; }
  std::vector<Action>& step_at(const Spot& spot) { return ranks_[spot.rank][spot.lane][spot.step]; }

  void note(std::string_view what, const Spot& spot) {
    damage_ += fmt::format("{}{} {} on rank {} in step {}", damage_.empty() ? "" : ", ", what,
                           action_text(at(spot), layers_), spot.rank, spot.step);
  }

  Spot any_spot() {
    while (true) {
      const Spot lane{below(ranks_.size()), below(kNumLanes), 0, 0};
      if (num_actions(lane) > 0) return any_spot_in_lane(lane);
    }
  }

  std::size_t num_actions(const Spot& lane) const {
    std::size_t count = 0;
    for (const std::vector<Action>& step : ranks_[lane.rank][lane.lane]) count += step.size();
    return count;
  }

  Spot any_spot_in_lane(Spot spot) {
    std::size_t left = below(num_actions(spot));
    for (spot.step = 0; left >= step_at(spot).size(); ++spot.step) left -= step_at(spot).size();
    spot.position = left;
    return spot;
  }

  /// Anywhere in the lane, most often in the same step.
  Spot place_in_lane(Spot spot) {
    if (below(4) == 0) spot.step = below(ranks_[spot.rank][spot.lane].size());
    spot.position = below(step_at(spot).size() + 1);
    return spot;
  }

  void remove(const Spot& spot) {
    step_at(spot).erase(step_at(spot).begin() + static_cast<std::ptrdiff_t>(spot.position));
  }
  void insert(const Spot& spot, const Action& action) {
    step_at(spot).insert(step_at(spot).begin() + static_cast<std::ptrdiff_t>(spot.position), action);
  }

  Action retargeted(Action action) {
    const Problem& problem = schedule_.problem;
    switch (below(7)) {
      case 0:
        action.type = static_cast<ActionType>(below(kNumActionTypes));
        return with_fields_of_type(action);
      case 1:
        if (traits_of(action.type).has_stage) action.stage = StageId::at(below(layers_.num_stages()));
        return with_fields_of_type(action);
      case 2:
        if (traits_of(action.type).has_micro_batch) {
          action.micro_batch = MicroBatchId::at(below(problem.num_micro_batches));
        }
        return action;
      case 3:
        if (traits_of(action.type).layers != ActionTraits::Layers::None) {
          action.first_layer = LayerId::at(below(layers_.total()));
          action.end_layer = LayerId::at(action.first_layer.index() + 1 + below(2));
        }
        return action;
      case 4:
        if (traits_of(action.type).has_factor && problem.num_factors > 0) {
          action.factor = static_cast<std::uint16_t>(below(problem.num_factors));
        }
        return action;
      case 5:
        if (traits_of(action.type).is_splittable) {
          action.num_pieces = static_cast<std::uint8_t>(1 + below(3));
          action.piece = static_cast<std::uint8_t>(below(action.num_pieces));
        }
        return action;
      default:
        action.age = static_cast<std::uint8_t>(below(problem.staleness + std::size_t{1}));
        return action;
    }
  }

  /// Gives an action what its type names and takes away what it does not.
  Action with_fields_of_type(const Action& action) const {
    const ActionTraits& traits = traits_of(action.type);
    Action fitting{.type = action.type};
    if (traits.has_stage) fitting.stage = action.stage.is_none() ? StageId{} : action.stage;
    if (traits.has_micro_batch) {
      fitting.micro_batch = action.micro_batch.is_none() ? MicroBatchId{} : action.micro_batch;
    }
    if (traits.layers != ActionTraits::Layers::None) {
      fitting.first_layer = layers_.first(fitting.stage);
      fitting.end_layer = traits.layers == ActionTraits::Layers::One
                              ? LayerId::at(fitting.first_layer.index() + 1)
                              : layers_.end(fitting.stage);
    }
    if (traits.has_factor) fitting.factor = action.factor;
    if (traits.may_be_stale) fitting.age = action.age;
    return fitting;
  }

  /// Damages all that are equal alike: what no comparison of ranks could find.
  void damage_everywhere(const Action& action, std::size_t lane) {
    const std::size_t kind = below(3);
    const Action other = retargeted(action);
    for (std::vector<Steps>& rank : ranks_) {
      for (std::vector<Action>& step : rank[lane]) {
        if (kind == 0) std::erase(step, action);
        if (kind == 1) std::replace(step.begin(), step.end(), action, other);
        if (kind != 2) continue;
        const auto found = std::find(step.begin(), step.end(), action);
        if (found != step.end()) std::rotate(step.begin(), found, found + 1);  // to the front
      }
    }
  }

  Schedule schedule_;
  StageLayers layers_;
  std::mt19937_64& random_;
  std::vector<std::vector<Steps>> ranks_;
  std::string damage_;
};

bool is_well_formed(const Schedule& schedule) {
  try {
    require_well_formed(schedule);
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

}  // namespace

Mutant mutate(const Schedule& original, std::mt19937_64& random) {
  while (true) {
    Mutation mutation(original, random);
    const std::size_t num_damages = 1 + (random() % 4 == 0) + (random() % 8 == 0);
    for (std::size_t i = 0; i < num_damages; ++i) mutation.damage();
    Mutant mutant = std::move(mutation).finish();
    if (!(mutant.schedule == original) && is_well_formed(mutant.schedule)) return mutant;
  }
}

}  // namespace plenum::schedule
