#include "plenum/schedule/fill/filled_cycle.h"

#include <algorithm>
#include <limits>

namespace plenum::schedule {
namespace {

std::int64_t round_down_quotient(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

class CycleBuilder {
 public:
  CycleBuilder(const SteadyStep& step, const Refresh& refresh, const Placement& placement,
               const CycleShape& shape)
      : step_(step), refresh_(refresh), placement_(placement), shape_(shape) {}

  std::optional<Schedule> run(std::size_t max_age, Freshness& freshness) {
    Schedule schedule{
        .name = step_.schedule().name, .problem = step_.schedule().problem, .ranks = step_.schedule().ranks};
    const std::vector<PlacedItem> nothing;
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        const bool is_compute = static_cast<Lane>(lane) == Lane::Compute;
        const bool is_data = static_cast<Lane>(lane) == Lane::DataParallel;
        schedule.ranks[r].lanes[lane] = build_lane(Rank::at(r), step_.schedule().ranks[r].lanes[lane],
                                                   is_compute ? placement_.compute[r]
                                                   : is_data  ? placement_.data[r]
                                                              : nothing);
      }
    }
    if (greatest_age_ > max_age) return std::nullopt;
    schedule.problem.staleness = static_cast<std::uint8_t>(greatest_age_);
    freshness = {.mean_age = num_uses_ > 0 ? sum_of_ages_ / static_cast<double>(num_uses_) : 0,
                 .max_age = greatest_use_};
    return schedule;
  }

 private:
  LaneProgram build_lane(Rank rank, const LaneProgram& own, const std::vector<PlacedItem>& placed) {
    std::vector<std::vector<const PlacedItem*>> of_step(shape_.num_steps);
    for (const PlacedItem& item : placed) of_step[item.step % shape_.num_steps].push_back(&item);
    LaneProgram program;
    program.reserve(own.actions().size() * shape_.num_steps + placed.size());
    for (std::size_t s = 0; s < shape_.num_steps; ++s) {
      std::stable_sort(of_step[s].begin(), of_step[s].end(),
                       [this](const PlacedItem* a, const PlacedItem* b) {
                         return a->position != b->position ? a->position < b->position
                                                           : time_in_step(*a) < time_in_step(*b);
                       });
      auto next = of_step[s].begin();
      for (std::size_t i = 0; i <= own.actions().size(); ++i) {
        for (; next != of_step[s].end() && (*next)->position == i; ++next) program.append(action_of(**next));
        if (i < own.actions().size()) program.append(own_action(rank, s, i, own.actions()[i]));
      }
      program.end_step();
    }
    return program;
  }

  double time_in_step(const PlacedItem& placed) const { return placed.start - placed.step * step_.seconds(); }

  Action action_of(const PlacedItem& placed) {
    Action action = refresh_.items()[placed.item].work.action;
    action.piece = placed.piece;
    action.num_pieces = placed.num_pieces;
    const std::size_t age =
        placed.step - shape_.statistics_step(placed.refresh) - refresh_.items()[placed.item].step;
    action.age = to_age(age);
    return action;
  }

  std::uint8_t to_age(std::size_t age) {
    greatest_age_ = std::max(greatest_age_, age);
    return static_cast<std::uint8_t>(std::min<std::size_t>(age, kMaxAge));
  }

  Action own_action(Rank rank, std::size_t step, std::size_t position, Action action) {
    if (!traits_of(action.type).may_be_stale) return action;
    std::vector<std::uint32_t> makers;
    std::vector<ValueRef> values;
    step_.dataflow().inputs(rank, action, values);
    for (const ValueRef& value : values) {
      if (const std::optional<std::uint32_t> maker = refresh_.maker(rank, value.index)) {
        makers.push_back(*maker);
      }
    }
    const std::size_t age = makers.empty() ? 0 : age_of_newest(makers, step, position);
    if (!makers.empty()) {
      sum_of_ages_ += static_cast<double>(age);
      ++num_uses_;
      greatest_use_ = std::max(greatest_use_, age);
    }
    action.age = to_age(age);
    return action;
  }

  /// The age of the newest refresh whose items `makers` all run before the step's own action at a position.
  std::size_t age_of_newest(const std::vector<std::uint32_t>& makers, std::size_t step,
                            std::size_t position) const {
    const auto num_steps = static_cast<std::int64_t>(shape_.num_steps);
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    for (std::size_t r = 0; r < shape_.num_refreshes; ++r) {
      std::int64_t cycle = std::numeric_limits<std::int64_t>::max();
      for (const std::uint32_t maker : makers) {
        const PlacedItem& placed = placement_.last[r * refresh_.items().size() + maker];
        const std::int64_t first_use = std::int64_t{placed.step} + (placed.position > position ? 1 : 0);
        cycle = std::min(cycle, round_down_quotient(static_cast<std::int64_t>(step) - first_use, num_steps));
      }
      const std::size_t first = shape_.statistics_step(r) + refresh_.items()[makers.front()].step;
      newest = std::max(newest, static_cast<std::int64_t>(first) + cycle * num_steps);
    }
    return static_cast<std::size_t>(static_cast<std::int64_t>(step) - newest);
  }

  const SteadyStep& step_;
  const Refresh& refresh_;
  const Placement& placement_;
  CycleShape shape_;
  std::size_t greatest_age_ = 0;
  std::size_t greatest_use_ = 0;
  double sum_of_ages_ = 0;
  std::size_t num_uses_ = 0;
};

}  // namespace

std::optional<Schedule> filled_cycle(const SteadyStep& step, const Refresh& refresh,
                                     const Placement& placement, const CycleShape& shape, std::size_t max_age,
                                     Freshness& freshness) {
  return CycleBuilder(step, refresh, placement, shape).run(max_age, freshness);
}

}  // namespace plenum::schedule
