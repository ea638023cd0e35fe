#include "plenum/schedule/fill/placement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

#include "plenum/schedule/fill/data_lane.h"
#include "plenum/schedule/fill/item_cut.h"
#include "plenum/schedule/fill/ready_pool.h"

namespace plenum::schedule {
namespace {

/// The part of a rank's slack that its gaps may waste one by one; the rest is for the end of the round.
constexpr double kSlackInGaps = 0.5;

/// Idle time of a compute lane, counted from the begin of the cycle.
struct Hole {
  double begin = 0;
  double end = 0;
  std::uint32_t step = 0;
  std::uint32_t position = 0;
  bool is_last = false;  ///< after the last action of the step: may belong to the next one too
  Place before;          ///< of the action before it
  Place next;            ///< of the action behind it
};

/// An item whose inputs will exist.
struct Arrival {
  double time = 0;
  std::uint32_t step = 0;  ///< to which the last of its inputs belongs
  Place after;             ///< of what makes its inputs
  double seconds = 0;
  ReadyItem item;
  friend bool operator>(const Arrival& a, const Arrival& b) {
    return a.time != b.time ? a.time > b.time : a.item.priority > b.item.priority;
  }
};

struct Event {
  double time = 0;
  std::uint32_t rank = 0;
  friend bool operator>(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.rank > b.rank;
  }
};

template <typename T>
using EarliestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

struct RankState {
  std::vector<PlacedItem> fixed;  ///< have a place already, by time
  std::vector<Hole> holes;        ///< of this round
  std::size_t hole = 0;
  double cursor = 0;
  bool is_waiting = false;      ///< for something to get ready before the hole ends
  std::vector<Hole> leftovers;  ///< for the next round
  bool has_placed = false;      ///< in this round
  ReadyPool pool;
  EarliestFirst<Arrival> arrivals;
  Place after = kBeforeAll;  ///< what its items so far come after
  std::size_t num_left = 0;  ///< items of the rank that have no place yet
  double slack = 0;          ///< the part of its holes that may stay empty
  double short_gap = 0;      ///< the shortest that counts
};

class Placer {
 public:
  Placer(const SteadyStep& step, const Refresh& refresh, const CostModel& costs,
         const PlacementOptions& options)
      : step_(step),
        refresh_(refresh),
        items_(refresh.items()),
        costs_(costs),
        shape_(options.shape),
        options_(options),
        cycle_seconds_(step.seconds() * static_cast<double>(shape_.num_steps)),
        rounding_(SteadyStep::kRounding * step.seconds()),
        order_(items_.size()),
        ranks_(step.schedule().ranks.size()),
        num_open_(items_.size() * shape_.num_refreshes),
        ready_(items_.size() * shape_.num_refreshes),
        least_step_(items_.size() * shape_.num_refreshes),
        after_(items_.size() * shape_.num_refreshes),
        is_fixed_(items_.size()) {
    placement_.compute.resize(ranks_.size());
    placement_.data.resize(ranks_.size());
    placement_.last.resize(items_.size() * shape_.num_refreshes);
    find_order();
    for (std::size_t r = 0; r < ranks_.size(); ++r) prepare_rank(Rank::at(r));
    for (const PlacedItem& placed : options_.fixed) is_fixed_[placed.item] = true;
    for (std::uint32_t r = 0; r < shape_.num_refreshes; ++r) prepare_refresh(r);
    for (const PlacedItem& placed : by_time(options_.fixed)) put_fixed(placed);
  }

  std::optional<Placement> run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) requeue(rank);
    while (!events_.empty() && !has_failed_) {
      const std::uint32_t rank = events_.top().rank;
      const double now = events_.top().time;
      events_.pop();
      advance(rank, now);
    }
    if (has_failed_) return std::nullopt;
    return std::move(placement_);
  }

 private:
  /// Within a refresh, items that a long chain waits for come first, or those that free most memory.
  void find_order() {
    std::vector<std::uint32_t> sorted(items_.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [this](std::uint32_t a, std::uint32_t b) {
      if (options_.order == WorkOrder::OldestFirst) return items_[a].height > items_[b].height;
      return items_[a].work.kept_bytes * items_[b].seconds > items_[b].work.kept_bytes * items_[a].seconds;
    });
    for (std::uint32_t i = 0; i < sorted.size(); ++i) order_[sorted[i]] = i;
  }

  std::uint64_t priority(std::uint32_t refresh, std::uint32_t i) const {
    const bool keeps_step = items_[i].predecessors.empty();
    const bool is_late = options_.order == WorkOrder::StatisticsFirst && !keeps_step;
    return (is_late ? num_open_.size() : 0) + refresh * items_.size() + order_[i];
  }

  void prepare_rank(Rank rank) {
    RankState& state = ranks_[rank.index()];
    data_lanes_.emplace_back(step_, rank, shape_.num_steps);
    double work = refresh_.compute_seconds(rank) * static_cast<double>(shape_.num_refreshes);
    double room = step_.bubble_seconds(rank) * static_cast<double>(shape_.num_steps);
    for (const PlacedItem& placed : options_.fixed) {
      if (items_[placed.item].ranks.front() == rank) state.fixed.push_back(placed);
    }
    state.fixed = by_time(state.fixed);
    const std::vector<Gap> gaps = step_.gaps(rank);
    for (const PlacedItem& placed : state.fixed) {
      work -= placed.end - placed.start;
      const double gap_end = end_of_gap(gaps, placed.position) + placed.step * step_.seconds();
      room -= std::clamp(gap_end - placed.start, 0.0, placed.end - placed.start);
    }
    state.slack = room > 0 ? std::max(0.0, 1 - work / room) : 0;
    has_failed_ |= work > room * (1 + SteadyStep::kRounding) + rounding_;
    state.short_gap = shortest_counting_gap(gaps);
    const double begin = options_.lag_steps * step_.seconds();
    const double end = begin + cycle_seconds_;
    for (std::uint32_t s = 0; s * step_.seconds() < end; ++s) {
      const double offset = s * step_.seconds();
      for (const Gap& gap : gaps) {
        if (gap.begin + offset < begin || gap.begin + offset >= end) continue;
        // What is idle behind the last action reaches into the next step.
        const double hole_end = options_.drains ? std::min(gap.end + offset, end) : gap.end + offset;
        add_hole(state, {.begin = gap.begin + offset,
                         .end = hole_end,
                         .step = s,
                         .position = static_cast<std::uint32_t>(gap.position),
                         .is_last = &gap == &gaps.back(),
                         .before = place_before(rank, s, gap),
                         .next = place_behind(rank, s, gap)});
      }
    }
  }

  static std::vector<PlacedItem> by_time(std::span<const PlacedItem> placed) {
    std::vector<PlacedItem> sorted(placed.begin(), placed.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const PlacedItem& a, const PlacedItem& b) { return a.end < b.end; });
    return sorted;
  }

  static double end_of_gap(std::span<const Gap> gaps, std::size_t position) {
    return std::ranges::find(gaps, position, &Gap::position)->end;
  }

  /// Appends what of a hole the items leave that have a place already.
  static void add_hole(RankState& state, Hole hole) {
    const double end = hole.end;
    for (const PlacedItem& placed : state.fixed) {
      if (placed.step != hole.step || placed.position != hole.position) continue;
      hole.end = std::min(placed.start, end);
      if (hole.end > hole.begin) state.holes.push_back(hole);
      hole.begin = std::max(hole.begin, placed.end);
    }
    hole.end = end;
    if (hole.begin <= hole.end) state.holes.push_back(hole);
  }

  void put_fixed(const PlacedItem& placed) {
    const Rank rank = items_[placed.item].ranks.front();
    placement_.compute[rank.index()].push_back(placed);
    const Place before = placed.position == 0
                             ? kBeforeAll
                             : Place{placed.step, step_.order(rank, Lane::Compute, placed.position - 1)};
    finish(placed, std::max(before, after_[index(placed.refresh, placed.item)]));
  }

  // Of the actions before and behind a gap of the compute lane.
  Place place_before(Rank rank, std::int64_t step, const Gap& gap) const {
    if (gap.position == 0) return kBeforeAll;  // the rank computes nothing
    return {step, step_.order(rank, Lane::Compute, gap.position - 1)};
  }
  Place place_behind(Rank rank, std::int64_t step, const Gap& gap) const {
    const std::size_t count = step_.times(rank, Lane::Compute).size();
    if (count == 0) return kBehindAll;
    const bool is_of_next = gap.position == count;
    return {step + (is_of_next ? 1 : 0), step_.order(rank, Lane::Compute, is_of_next ? 0 : gap.position)};
  }

  void prepare_refresh(std::uint32_t refresh) {
    for (std::uint32_t i = 0; i < items_.size(); ++i) {
      const Refresh::Item& item = items_[i];
      const std::size_t of_step = statistics_step(refresh, i);
      num_open_[index(refresh, i)] = static_cast<std::uint32_t>(item.predecessors.size());
      ready_[index(refresh, i)] = static_cast<double>(of_step) * step_.seconds() + item.ready;
      least_step_[index(refresh, i)] = static_cast<std::uint32_t>(of_step);
      after_[index(refresh, i)] = {static_cast<std::int64_t>(of_step), item.ready_order};
      if (!is_collective(i) && !is_fixed_[i]) ++ranks_[item.ranks.front().index()].num_left;
    }
    for (std::uint32_t i = 0; i < items_.size(); ++i) {
      if (items_[i].predecessors.empty() && !is_fixed_[i]) admit(refresh, i);
    }
  }

  /// Where it must be.
  bool is_in_cycle(std::size_t step) const { return !options_.drains || step < shape_.num_steps; }

  std::size_t statistics_step(std::uint32_t refresh, std::uint32_t item) const {
    return shape_.statistics_step(refresh) + items_[item].step;
  }

  std::size_t index(std::uint32_t refresh, std::uint32_t item) const {
    return refresh * items_.size() + item;
  }

  bool is_collective(std::uint32_t item) const {
    return traits_of(items_[item].work.action.type).is_collective;
  }

  /// Takes up an item whose predecessors all have a place.
  void admit(std::uint32_t refresh, std::uint32_t i) {
    if (is_collective(i)) {
      reduce(refresh, i);
      return;
    }
    const ReadyItem item{.priority = priority(refresh, i), .item = i, .refresh = refresh};
    ranks_[items_[i].ranks.front().index()].arrivals.push({.time = ready_[index(refresh, i)],
                                                           .step = least_step_[index(refresh, i)],
                                                           .after = after_[index(refresh, i)],
                                                           .seconds = items_[i].seconds,
                                                           .item = item});
  }

  void finish(const PlacedItem& placed, const Place& after) {
    placement_.last[index(placed.refresh, placed.item)] = placed;
    for (const std::uint32_t successor : items_[placed.item].successors) {
      double& ready = ready_[index(placed.refresh, successor)];
      ready = std::max(ready, placed.end);
      std::uint32_t& least_step = least_step_[index(placed.refresh, successor)];
      least_step = std::max(least_step, placed.step);
      Place& successor_after = after_[index(placed.refresh, successor)];
      successor_after = std::max(successor_after, after);
      if (--num_open_[index(placed.refresh, successor)] == 0) admit(placed.refresh, successor);
    }
  }

  void reduce(std::uint32_t refresh, std::uint32_t i) {
    const std::optional<CollectiveSlot> slot = first_slot(step_, data_lanes_, items_[i].ranks,
                                                          {.start = ready_[index(refresh, i)],
                                                           .step = least_step_[index(refresh, i)],
                                                           .after = after_[index(refresh, i)]},
                                                          items_[i].seconds);
    const bool is_late = slot && !is_in_cycle(static_cast<std::size_t>(slot->step));
    if (slot && !is_late) {
      put_collective(refresh, i, *slot);
    } else {
      has_failed_ = true;
    }
  }

  void put_collective(std::uint32_t refresh, std::uint32_t i, const CollectiveSlot& slot) {
    const Refresh::Item& item = items_[i];
    PlacedItem placed{.item = i,
                      .refresh = refresh,
                      .step = static_cast<std::uint32_t>(slot.step),
                      .start = slot.start,
                      .end = slot.start + item.seconds};
    for (const Rank rank : item.ranks) {
      DataLane& lane = data_lanes_[rank.index()];
      lane.occupy(slot.start, item.seconds);
      lane.add_collective(slot.start, slot.after);
      placed.position = static_cast<std::uint32_t>(lane.num_done(slot.start) -
                                                   slot.step * static_cast<std::int64_t>(lane.num_actions()));
      placement_.data[rank.index()].push_back(placed);
    }
    finish(placed, slot.after);
  }

  void requeue(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    if (state.num_left == 0 || has_failed_) return;
    if (state.hole == state.holes.size()) begin_round(state);
    if (has_failed_) return;
    state.cursor = std::max(state.cursor, state.holes[state.hole].begin);
    events_.push({.time = state.is_waiting ? state.holes[state.hole].end : state.cursor, .rank = rank});
  }

  void begin_round(RankState& state) {
    if (options_.drains || !state.has_placed || state.leftovers.empty()) {
      has_failed_ = true;
      return;
    }
    state.has_placed = false;
    state.hole = 0;
    state.cursor = 0;
    state.holes = std::move(state.leftovers);
    state.leftovers.clear();
    for (Hole& hole : state.holes) {
      hole.begin += cycle_seconds_;
      hole.end += cycle_seconds_;
      hole.step += static_cast<std::uint32_t>(shape_.num_steps);
      if (hole.before != kBeforeAll) hole.before.step += static_cast<std::int64_t>(shape_.num_steps);
      if (hole.next != kBehindAll) hole.next.step += static_cast<std::int64_t>(shape_.num_steps);
    }
  }

  void advance(std::uint32_t rank, double now) {
    RankState& state = ranks_[rank];
    const Hole& hole = state.holes[state.hole];
    const std::uint32_t last_step = hole.step + (hole.is_last ? 1 : 0);
    const auto may_run_here = [&](const Arrival& arrival) {
      return arrival.step <= last_step && arrival.after < hole.next;
    };
    while (!state.arrivals.empty() && state.arrivals.top().time <= state.cursor + rounding_ &&
           may_run_here(state.arrivals.top())) {
      state.pool.add(state.arrivals.top().seconds, state.arrivals.top().item);
      state.arrivals.pop();
    }
    if (!place_next(rank, hole)) {
      const bool something_comes = !state.arrivals.empty() && state.arrivals.top().time < hole.end &&
                                   may_run_here(state.arrivals.top());
      if (something_comes) {
        leave_empty(state, state.arrivals.top().time);
        state.is_waiting = false;
      } else if (now < hole.end) {
        state.is_waiting = true;
      } else {
        leave_empty(state, hole.end);
        state.is_waiting = false;
        ++state.hole;
      }
    }
    requeue(rank);
  }

  void leave_empty(RankState& state, double until) {
    Hole rest = state.holes[state.hole];
    rest.begin = state.cursor;
    rest.end = until;
    state.leftovers.push_back(rest);
    state.cursor = until;
  }

  bool place_next(std::uint32_t rank, const Hole& hole) {
    RankState& state = ranks_[rank];
    const double room = hole.end - state.cursor + rounding_;
    const double enough = kSlackInGaps * state.slack * (hole.end - hole.begin) + rounding_;
    const std::optional<ReadyPool::Choice> choice = state.pool.choose(room, enough);
    if (!choice || choice->waste > enough) {
      if (cut_next(rank, hole, room, choice ? choice->waste : room, enough)) return true;
    }
    if (!choice) return false;
    const double seconds = state.pool.lengths()[choice->length].seconds;
    put(rank, hole, state.pool.take(choice->length), seconds);
    return true;
  }

  /// Puts the first pieces of an item into the rest of a hole where that leaves clearly less than `waste`.
  bool cut_next(std::uint32_t rank, const Hole& hole, double room, double waste, double enough) {
    RankState& state = ranks_[rank];
    const std::optional<ItemCut> cut =
        find_cut(state.pool, refresh_, costs_, {rank}, room, waste, enough, state.short_gap);
    if (!cut) return false;
    ReadyItem item = state.pool.take(cut->length);
    item.num_pieces = static_cast<std::uint8_t>(cut->num_pieces);
    for (std::size_t piece = 0; piece < cut->num_pieces; ++piece) {
      item.piece = static_cast<std::uint8_t>(piece);
      if (piece < cut->num_now) {
        put(rank, hole, item, cut->piece_seconds);
      } else {
        state.pool.add(cut->piece_seconds, item);
      }
    }
    return true;
  }

  void put(std::uint32_t rank, const Hole& hole, const ReadyItem& item, double seconds) {
    RankState& state = ranks_[rank];
    const double end = state.cursor + seconds;
    const bool is_next = hole.is_last && (step_.step_at(state.cursor) > hole.step ||
                                          least_step_[index(item.refresh, item.item)] > hole.step);
    placement_.compute[rank].push_back({.item = item.item,
                                        .refresh = item.refresh,
                                        .piece = item.piece,
                                        .num_pieces = item.num_pieces,
                                        .step = hole.step + (is_next ? 1 : 0),
                                        .position = is_next ? 0 : hole.position,
                                        .start = state.cursor,
                                        .end = end});
    state.cursor = end;
    state.after = std::max({state.after, hole.before, after_[index(item.refresh, item.item)]});
    state.has_placed = true;
    state.is_waiting = false;
    const std::size_t max_age = std::min(options_.max_age, items_[item.item].work.max_age);
    const std::size_t placed_step = placement_.compute[rank].back().step;
    has_failed_ |=
        placed_step - statistics_step(item.refresh, item.item) > max_age || !is_in_cycle(placed_step);
    if (item.piece + 1 < item.num_pieces) return;
    --state.num_left;
    finish(placement_.compute[rank].back(), state.after);
  }

  const SteadyStep& step_;
  const Refresh& refresh_;
  const std::vector<Refresh::Item>& items_;
  const CostModel& costs_;
  CycleShape shape_;
  PlacementOptions options_;
  double cycle_seconds_;
  double rounding_;
  std::vector<std::uint32_t> order_;  ///< of each item within its refresh
  std::vector<RankState> ranks_;
  std::vector<DataLane> data_lanes_;
  std::vector<std::uint32_t> num_open_;  ///< predecessors that have no place yet
  std::vector<double> ready_;
  std::vector<std::uint32_t> least_step_;  ///< the last one to which a predecessor belongs
  std::vector<Place> after_;               ///< of what makes an item's inputs
  std::vector<bool> is_fixed_;             ///< items that have a place already
  EarliestFirst<Event> events_;
  Placement placement_;
  bool has_failed_ = false;
};

}  // namespace

std::optional<Placement> place(const SteadyStep& step, const Refresh& refresh, const CostModel& costs,
                               const PlacementOptions& options) {
  return Placer(step, refresh, costs, options).run();
}

}  // namespace plenum::schedule
