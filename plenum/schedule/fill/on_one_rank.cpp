#include "plenum/schedule/fill/on_one_rank.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/schedule/fill/filler.h"
#include "plenum/schedule/generate/single.h"

namespace plenum::schedule {
namespace {

bool makes_inverse(ActionType type) {
  return is_inversion(type) || type == ActionType::InverseRoot;
}

/// The second-order work of all ranks, as one rank does it.
class JointWork {
 public:
  explicit JointWork(const Schedule& schedule) : steps_(schedule.num_steps()) {
    for (const RankProgram& rank : schedule.ranks) {
      const LaneProgram& compute = rank.lane(Lane::Compute);
      for (std::size_t step = 0; step < compute.num_steps(); ++step) add_step(step, compute.step(step));
    }
    for (Step& step : steps_) {
      std::ranges::stable_sort(step.statistics, {}, [](const Action& action) {
        return std::tuple(action.first_layer.value, action.factor, action.type);
      });
    }
  }

  void append_statistics(std::size_t step, MicroBatchId micro_batch, LaneProgram& lane) const {
    for (const Action& action : steps_[step].statistics) {
      if (action.micro_batch == micro_batch) lane.append(action);
    }
  }
  void append_work_on_gradients(std::size_t step, LaneProgram& lane) const {
    for (const auto& [layer, action] : steps_[step].accumulations) lane.append(action);
    for (const Action& action : steps_[step].inverted_before) lane.append(action);
    for (const auto& [layer, action] : steps_[step].preconditionings) lane.append(action);
    for (const Action& action : steps_[step].inverted_behind) lane.append(action);
  }

 private:
  struct Step {
    std::vector<Action> statistics;                 ///< taken in this step, whenever the ranks get to it
    std::map<std::uint32_t, Action> accumulations;  ///< by first layer
    std::vector<Action> inverted_before;            ///< completed in this step, before the gradient needs it
    std::map<std::uint32_t, Action> preconditionings;  ///< by first layer
    std::vector<Action> inverted_behind;
  };

  /// What one rank does in a step.
  void add_step(std::size_t step, std::span<const Action> actions) {
    Step& at = steps_[step];
    std::vector<Action> preconditioned;
    for (const Action& action : actions) {
      if (is_curvature(action.type)) {
        steps_[data_step(step, action)].statistics.push_back(on_the_only_stage(action, 0));
      } else if (action.type == ActionType::AccumulateFactor) {
        at.accumulations.try_emplace(action.first_layer.value, on_the_only_stage(action, 0));
      } else if (action.type == ActionType::Precondition) {
        // Every holder preconditions maps of its own; the oldest inverses are there for all of them.
        Action& joint = at.preconditionings.try_emplace(action.first_layer.value, action).first->second;
        joint = on_the_only_stage(action, std::max(joint.age, action.age));
        preconditioned.push_back(action);
      } else if (makes_inverse(action.type) && action.piece + 1 == action.num_pieces) {
        const bool is_late = std::ranges::any_of(preconditioned, [&](const Action& done) {
          return done.first_layer <= action.first_layer && action.first_layer < done.end_layer;
        });
        (is_late ? at.inverted_behind : at.inverted_before).push_back(on_the_only_stage(action, action.age));
      }
    }
  }
  std::size_t data_step(std::size_t step, const Action& action) const {
    const std::size_t num_steps = steps_.size();
    return (step + (action.age / num_steps + 1) * num_steps - action.age) % num_steps;
  }
  static Action on_the_only_stage(Action action, std::uint8_t age) {
    action.stage = {};
    action.piece = 0;
    action.num_pieces = 1;
    action.age = age;
    return action;
  }

  std::vector<Step> steps_;
};

}  // namespace

Schedule on_one_rank(const Schedule& schedule) {
  const Preconditioner preconditioner = schedule.problem.preconditioner;
  base::require(preconditioner == Preconditioner::Kfac || preconditioner == Preconditioner::Shampoo,
                "only a schedule with K-FAC or Shampoo has work to do on one rank as its ranks do it: {}",
                schedule.name);
  const JointWork work(schedule);
  const StageLayers layers(schedule.problem);
  Schedule single = generate_single({.num_micro_batches = schedule.problem.num_micro_batches,
                                     .stage_layers = {static_cast<std::uint16_t>(layers.total())}});
  const RankProgram step_of_one = single.ranks.front();
  single.name = schedule.name + " on one rank";
  single.problem.preconditioner = preconditioner;
  single.problem.num_factors = schedule.problem.num_factors;
  single.problem.has_partial_curvature = schedule.problem.has_partial_curvature;
  single.problem.staleness = schedule.problem.staleness;
  single.problem.micro_batch_sizes = schedule.problem.micro_batch_sizes;
  RankProgram& program = single.ranks.front();
  program.lanes = {};
  for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      bool has_begun_end = false;
      for (const Action& action : step_of_one.lanes[lane].step(0)) {
        if (static_cast<Lane>(lane) == Lane::Compute && ends_step(action.type, preconditioner) &&
            !std::exchange(has_begun_end, true)) {
          work.append_work_on_gradients(step, program.lanes[lane]);
        }
        program.lanes[lane].append(action);
        if (action.type == ActionType::Backward)
          work.append_statistics(step, action.micro_batch, program.lanes[lane]);
      }
      program.lanes[lane].end_step();
    }
  }
  return single;
}

}  // namespace plenum::schedule
