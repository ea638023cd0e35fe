#include "plenum/schedule/fill/steady_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

constexpr std::size_t kNumReplayedSteps = SteadyStep::kUnknownAge;
constexpr double kNever = -std::numeric_limits<double>::infinity();

LaneProgram with_actions(const LaneProgram& lane, std::span<const Action> added,
                         Preconditioner preconditioner) {
  LaneProgram program;
  const std::span<const Action> step = lane.step(0);
  const auto end = std::find_if(step.begin(), step.end(),
                                [&](const Action& action) { return ends_step(action.type, preconditioner); });
  std::for_each(step.begin(), end, [&](const Action& action) { program.append(action); });
  for (const Action& action : added) program.append(action);
  std::for_each(end, step.end(), [&](const Action& action) { program.append(action); });
  program.end_step();
  return program;
}

Schedule with_step_actions(Schedule schedule, const Filler& filler) {
  base::require(schedule.num_steps() == 1, "only a schedule of one step can be filled: it has {}",
                schedule.num_steps());
  base::require(schedule.problem.preconditioner == Preconditioner::None,
                "the schedule is filled already: it has a preconditioner");
  filler.change(schedule.problem);
  schedule.problem.staleness = SteadyStep::kUnknownAge;
  const Dataflow dataflow(schedule);
  std::vector<RankProgram> ranks = schedule.ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<Action> actions;
    filler.add_step_actions(dataflow, Rank::at(rank), actions);
    std::array<std::vector<Action>, kNumLanes> added;
    for (Action& action : actions) {
      const ActionTraits& traits = traits_of(action.type);
      if (traits.may_be_stale) action.age = SteadyStep::kUnknownAge;
      added[static_cast<std::size_t>(traits.lane)].push_back(action);
    }
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      ranks[rank].lanes[lane] =
          with_actions(ranks[rank].lanes[lane], added[lane], schedule.problem.preconditioner);
    }
  }
  schedule.ranks = std::move(ranks);
  return schedule;
}

}  // namespace

SteadyStep::SteadyStep(Schedule base, const Filler& filler, const CostModel& costs, IdleTime idle)
    : schedule_(with_step_actions(std::move(base), filler)), dataflow_(schedule_) {
  ReplayResult result = replay(schedule_, dataflow_, costs, kNumReplayedSteps);
  if (!result.blocked.empty()) {
    const BlockedAction& blocked = result.blocked.front();
    const LaneProgram& lane = schedule_.ranks[blocked.rank.index()].lane(blocked.lane);
    base::fail("the schedule does not run to its end: rank {} waits at {} for ever", blocked.rank.value,
               action_text(lane.actions()[blocked.position], dataflow_.layers()));
  }
  seconds_ = result.end - result.begin;
  times_ = std::move(result.times);
  for (RankTimes& rank : times_) {
    for (LaneTimes& lane : rank) {
      for (ActionTime& time : lane) time = {time.start - result.begin, time.end - result.begin};
    }
  }
  GatheredStep gathered = gather_gaps(dataflow_, times_, seconds_, idle);
  times_ = std::move(gathered.times);
  order_ = std::move(gathered.order);
  first_start_ = seconds_;
  for (const RankTimes& rank : times_) {
    const LaneTimes& compute = rank[static_cast<std::size_t>(Lane::Compute)];
    if (!compute.empty()) first_start_ = std::min(first_start_, compute.front().start);
  }
  find_values();
}

std::int64_t SteadyStep::step_at(double time) const {
  return static_cast<std::int64_t>(std::floor((time - first_start_) / seconds_ + kRounding));
}

void SteadyStep::find_values() {
  std::vector<ValueRef> values;
  for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
    const Rank rank = Rank::at(r);
    std::vector<double>& made = made_.emplace_back(dataflow_.num_values(rank), kNever);
    std::vector<std::int64_t>& made_order = made_order_.emplace_back(made.size(), -1);
    std::vector<double>& released = released_.emplace_back(dataflow_.num_values(rank), kNever);
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const std::span<const Action> actions = schedule_.ranks[r].lanes[lane].actions();
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const double end = times_[r][lane][i].end;
        dataflow_.outputs(rank, actions[i], values);
        for (const ValueRef& value : values) {
          made[value.index] = std::max(made[value.index], end);
          made_order[value.index] =
              std::max(made_order[value.index], order(rank, static_cast<Lane>(lane), i));
          released[value.index] = std::max(released[value.index], end);
        }
        dataflow_.inputs(rank, actions[i], values);
        for (const ValueRef& value : values) {
          released[value.index] = std::max(released[value.index], end + value.age * seconds_);
        }
      }
    }
  }
}

std::optional<double> SteadyStep::made(Rank rank, std::uint32_t value) const {
  const double time = made_[rank.index()][value];
  if (time == kNever) return std::nullopt;
  return time;
}

std::vector<Gap> SteadyStep::gaps(Rank rank) const {
  const LaneTimes& lane = times(rank, Lane::Compute);
  if (lane.empty()) return {{.begin = 0, .end = seconds_, .position = 0}};
  std::vector<Gap> gaps;
  for (std::size_t i = 0; i < lane.size(); ++i) {
    const double next = i + 1 < lane.size() ? lane[i + 1].start : lane.front().start + seconds_;
    gaps.push_back({.begin = lane[i].end, .end = std::max(next, lane[i].end), .position = i + 1});
  }
  return gaps;
}

double SteadyStep::bubble_seconds(Rank rank) const {
  double sum = 0;
  for (const Gap& gap : gaps(rank)) sum += gap.end - gap.begin;
  return sum;
}

double SteadyStep::data_idle_seconds(Rank rank) const {
  double idle = seconds_;
  for (const ActionTime& time : times(rank, Lane::DataParallel)) idle -= time.end - time.start;
  return idle > kRounding * seconds_ ? idle : 0;
}

}  // namespace plenum::schedule
