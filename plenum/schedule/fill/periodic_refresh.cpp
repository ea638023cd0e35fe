#include "plenum/schedule/fill/periodic_refresh.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

bool makes_errors(const Action& action) {
  return action.type == ActionType::Backward || action.type == ActionType::InputGradient;
}

/// Whether a backward is the one behind which a piece of work on a micro-batch stands.
bool is_behind(const Action& work, const Action& backward) {
  return makes_errors(backward) && work.stage == backward.stage && work.micro_batch == backward.micro_batch &&
         work.first_layer >= backward.first_layer && work.first_layer < backward.end_layer;
}

/// One rank's lanes with a filler's work.
class RankBuilder {
 public:
  RankBuilder(const Dataflow& dataflow, const Filler& filler, Rank rank) : dataflow_(dataflow), rank_(rank) {
    filler.add_step_actions(dataflow, rank, step_actions_);
    std::vector<WorkItem> items;
    filler.add_refresh(dataflow, rank, items);
    for (const WorkItem& item : items) refresh_.push_back(item.action);
    if (dataflow.schedule().num_stages() > 1) return;
    invert_at_once();
    precondition_at_once();
  }

  LaneProgram build(Lane lane, const LaneProgram& own, std::size_t every) {
    LaneProgram program;
    for (std::size_t step = 0; step < every; ++step) {
      for (const Action& work : refresh_) {
        if (step == 0 && traits_of(work.type).lane == lane) waiting_.push_back(work);
      }
      add_step(lane, own.step(0), static_cast<std::uint8_t>(step), program);
      program.end_step();
    }
    return program;
  }

 private:
  /// Makes the inversions of all maps, which nothing stands between, one action.
  void invert_at_once() {
    const auto is_inversion = [](const Action& work) { return work.type == ActionType::Invert; };
    const auto first = std::ranges::find_if(refresh_, is_inversion);
    if (first == refresh_.end()) return;
    const StageId stage = first->stage;
    std::erase_if(refresh_, is_inversion);
    refresh_.push_back({.type = ActionType::InvertLayers,
                        .stage = stage,
                        .first_layer = dataflow_.layers().first(stage),
                        .end_layer = dataflow_.layers().end(stage)});
  }

  /// The same of the preconditioning of neighbouring layers, where nobody else waits for one of them.
  void precondition_at_once() {
    std::vector<Action> joined;
    for (const Action& action : step_actions_) {
      const bool is_next = action.type == ActionType::Precondition && !joined.empty() &&
                           joined.back().type == action.type && joined.back().stage == action.stage &&
                           joined.back().end_layer == action.first_layer;
      if (is_next) {
        joined.back().end_layer = action.end_layer;
      } else {
        joined.push_back(action);
      }
    }
    step_actions_ = std::move(joined);
  }

  void add_step(Lane lane, std::span<const Action> own, std::uint8_t age, LaneProgram& program) {
    const Preconditioner preconditioner = dataflow_.schedule().problem.preconditioner;
    const auto end = std::find_if(
        own.begin(), own.end(), [&](const Action& action) { return ends_step(action.type, preconditioner); });
    std::for_each(own.begin(), end, [&](const Action& action) {
      program.append(action);
      take(program, [&](const Action& work) { return is_behind(work, action); });
    });
    // Collectives of a refresh need nothing that the step's own still wait for.
    take(program, [](const Action& work) { return traits_of(work.type).is_collective; });
    for (Action action : step_actions_) {
      if (traits_of(action.type).lane != lane) continue;
      take(program, [&](const Action& work) { return makes_input(work, action); });
      if (traits_of(action.type).may_be_stale) action.age = age;
      program.append(action);
    }
    take(program, [](const Action&) { return true; });
    std::for_each(end, own.end(), [&](const Action& action) { program.append(action); });
  }

  /// Whether an action reads what a piece of work makes.
  bool makes_input(const Action& work, const Action& action) const {
    std::vector<ValueRef> made;
    std::vector<ValueRef> read;
    dataflow_.outputs(rank_, work, made);
    dataflow_.inputs(rank_, action, read);
    return std::ranges::any_of(
        made, [&](const ValueRef& value) { return std::ranges::find(read, value) != read.end(); });
  }

  /// Appends the waiting work for which `is_due` holds, in its order.
  template <typename IsDue>
  void take(LaneProgram& program, IsDue is_due) {
    std::erase_if(waiting_, [&](const Action& work) {
      if (!is_due(work)) return false;
      program.append(work);
      return true;
    });
  }

  const Dataflow& dataflow_;
  Rank rank_;
  std::vector<Action> step_actions_;
  std::vector<Action> refresh_;
  std::vector<Action> waiting_;
};

}  // namespace

Schedule with_periodic_refresh(const Schedule& base, const Filler& filler, std::size_t every) {
  base::require(base.num_steps() == 1, "only a schedule of one step can be repeated: it has {}",
                base.num_steps());
  base::require(base.problem.preconditioner == Preconditioner::None,
                "the schedule has a preconditioner already");
  base::require(every >= 1 && every <= std::size_t{kMaxAge} + 1,
                "a refresh is due every 1 to {} steps, not every {}", std::size_t{kMaxAge} + 1, every);
  Schedule schedule = base;
  filler.change(schedule.problem);
  schedule.problem.staleness = static_cast<std::uint8_t>(every - 1);
  const Dataflow dataflow(schedule);
  std::vector<RankProgram> ranks = schedule.ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RankBuilder builder(dataflow, filler, Rank::at(rank));
    for (std::size_t lane = 0; lane < kNumLanes; ++lane)
      ranks[rank].lanes[lane] = builder.build(static_cast<Lane>(lane), base.ranks[rank].lanes[lane], every);
  }
  schedule.ranks = std::move(ranks);
  return schedule;
}

}  // namespace plenum::schedule
