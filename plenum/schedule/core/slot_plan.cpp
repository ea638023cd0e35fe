#include "plenum/schedule/core/slot_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  return a - floor_divide(a, b) * b;
}

/// Those that have begun before time 0, in this cycle or an earlier one, and have not ended before it.
std::int64_t num_at_begin(std::span<const Interval> intervals, std::int64_t cycle) {
  std::int64_t count = 0;
  for (const Interval& interval : intervals) {
    count += floor_divide(interval.end, cycle) - floor_divide(interval.begin, cycle);
  }
  return count;
}

/// The intervals by their begin or end within a cycle, and the place of each in that order.
struct CyclicOrder {
  std::vector<std::size_t> order;
  std::vector<std::int64_t> place;  ///< counted on from cycle to cycle, of the interval of cycle 0

  CyclicOrder(std::span<const Interval> intervals, std::int64_t Interval::*point, std::int64_t cycle)
      : order(intervals.size()), place(intervals.size()) {
    const auto within = [&](std::size_t i) { return modulo(intervals[i].*point, cycle); };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return within(a) < within(b); });
    const auto count = static_cast<std::int64_t>(intervals.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::int64_t cycles = floor_divide(intervals[order[k]].*point, cycle);
      place[order[k]] = cycles * count + static_cast<std::int64_t>(k);
    }
  }
};

}  // namespace

std::size_t most_at_once(std::span<const Interval> intervals, std::int64_t cycle) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(cycle), 0);
  for (const Interval& interval : intervals) {
    ++change[static_cast<std::size_t>(modulo(interval.begin, cycle))];
    --change[static_cast<std::size_t>(modulo(interval.end, cycle))];
  }
  std::int64_t level = num_at_begin(intervals, cycle);
  std::int64_t most = level;
  for (const std::int64_t at_point : change) most = std::max(most, level += at_point);
  return static_cast<std::size_t>(most);
}

SlotPlan::SlotPlan(std::span<const Interval> intervals, std::int64_t cycle)
    : num_slots_(most_at_once(intervals, cycle)), turns_(intervals.size()) {
  const auto count = static_cast<std::int64_t>(intervals.size());
  const CyclicOrder begins(intervals, &Interval::begin, cycle);
  const CyclicOrder ends(intervals, &Interval::end, cycle);
  const std::int64_t ahead =
      static_cast<std::int64_t>(num_slots_) - num_at_begin(intervals, cycle);  // of beginnings before ends
  std::vector<bool> has_turn(intervals.size(), false);
  std::size_t next_slot = 0;
  for (std::size_t first = 0; first < intervals.size(); ++first) {
    if (has_turn[first]) continue;
    std::vector<std::pair<std::size_t, std::int64_t>> members;  // and in which cycle, seen from the first
    std::int64_t cycles = 0;
    for (std::size_t i = first; !has_turn[i];) {
      has_turn[i] = true;
      members.emplace_back(i, cycles);
      const std::int64_t place = ends.place[i] + ahead;
      const std::size_t next = begins.order[static_cast<std::size_t>(modulo(place, count))];
      cycles += (place - begins.place[next]) / count;
      i = next;
    }
    base::check(cycles > 0, "intervals must have a length");
    for (const auto& [i, in_cycle] : members) {
      turns_[i] = {next_slot, static_cast<std::uint64_t>(cycles),
                   static_cast<std::uint64_t>(modulo(-in_cycle, cycles))};
    }
    next_slot += static_cast<std::size_t>(cycles);
  }
  base::check(next_slot == num_slots_, "the slots must be as many as meet: {} of {}", next_slot, num_slots_);
}

std::size_t SlotPlan::slot(std::size_t index, std::uint64_t cycle) const {
  const Turn& turn = turns_[index];
  return turn.first_slot + static_cast<std::size_t>((cycle + turn.offset) % turn.num_slots);
}

}  // namespace plenum::schedule
