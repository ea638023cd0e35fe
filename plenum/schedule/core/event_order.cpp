#include "plenum/schedule/core/event_order.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

/// Where everybody waits for everybody. In the others, a rank whose part is empty may pass.
bool sums_for_all(const Action& action) {
  const ActionTraits& traits = traits_of(action.type);
  return traits.is_collective && traits.lane == Lane::DataParallel && !is_scatter(action.type) &&
         !is_gather(action.type);
}

/// Steps that must lie before a cycle for all that its messages can know of earlier ones: a step's first
/// receive comes after all sends of the step before, which come after the updates of the one before that.
constexpr std::size_t kStepsBefore = 3;

}  // namespace

/// A lane whose progress is of interest.
struct EventOrder::WatchedLane {
  Event first = 0;
  std::int64_t length = 0;  ///< in actions

  bool holds(Event event) const { return event >= first && event - first < 2 * length; }
  friend bool operator==(const WatchedLane&, const WatchedLane&) = default;
};

/// For each cycle and event, how many actions of each watched lane have surely ended.
struct EventOrder::Knowledge {
  std::vector<WatchedLane> lanes = {};
  std::size_t num_events = 0;
  std::size_t num_cycles = 0;
  std::vector<std::int32_t> ended = {};  ///< counted from the first cycle

  std::size_t at(std::size_t cycle, Event event) const { return (cycle * num_events + event) * lanes.size(); }
  /// Counted from the last cycle, at an event of it; nothing if none is known to have ended.
  std::optional<std::int64_t> in_last_cycle(Event event, std::size_t lane) const {
    const std::size_t last = num_cycles - 1;
    const std::int32_t count = ended[at(last, event) + lane];
    if (count == 0) return std::nullopt;
    return count - static_cast<std::int64_t>(last) * lanes[lane].length;
  }
};

EventOrder::EventOrder(const Dataflow& dataflow) : dataflow_(dataflow) {
  std::uint64_t next = 0;
  for (const RankProgram& rank : dataflow.schedule().ranks) {
    for (const LaneProgram& lane : rank.lanes) {
      lane_begins_.push_back(static_cast<Event>(next));
      next += 2 * lane.actions().size();
    }
  }
  base::require(next < kNoEvent, "the schedule is too large: it has {} actions", next / 2);
  lane_begins_.push_back(static_cast<Event>(next));
  find_makers();
  find_causes();
  sort_events();
}

EventOrder::Event EventOrder::begin_of(Rank rank, Lane lane, std::size_t position) const {
  return lane_begins_[rank.index() * kNumLanes + static_cast<std::size_t>(lane)] +
         static_cast<Event>(2 * position);
}

/// Those that work on an earlier step do nothing while there is none, so nobody may rely on them.
void EventOrder::find_makers() {
  const Schedule& schedule = dataflow_.schedule();
  const std::size_t num_steps = schedule.num_steps();
  std::vector<ValueRef> values;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const Rank rank = Rank::at(r);
    std::vector<Event>& makers = makers_.emplace_back(dataflow_.num_values(rank) * num_steps, kNoEvent);
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const LaneProgram& program = schedule.ranks[r].lanes[lane];
      for (std::size_t step = 0; step < num_steps; ++step) {
        for (std::size_t i = program.step_begin(step); i < program.step_end(step); ++i) {
          dataflow_.outputs(rank, program.actions()[i], values);
          for (const ValueRef& value : values) {
            if (value.age > 0) continue;
            makers[value.index * num_steps + step] = begin_of(rank, static_cast<Lane>(lane), i);
          }
        }
      }
    }
  }
}

EventOrder::Event EventOrder::maker(Rank rank, std::uint32_t value, std::size_t step) const {
  return makers_[rank.index()][value * dataflow_.schedule().num_steps() + step];
}

void EventOrder::find_causes() {
  const Schedule& schedule = dataflow_.schedule();
  receives_.assign(lane_begins_.back() / 2, kNoEvent);
  cause_begins_.reserve(lane_begins_.back() + std::size_t{1});
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const Rank rank = Rank::at(r);
    for (std::size_t l = 0; l < kNumLanes; ++l) {
      const Lane lane = static_cast<Lane>(l);
      const LaneProgram& program = schedule.ranks[r].lane(lane);
      for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
        for (std::size_t i = program.step_begin(step); i < program.step_end(step); ++i) {
          cause_begins_.push_back(causes_.size());
          add_causes_of_begin(rank, lane, i, step);
          cause_begins_.push_back(causes_.size());
          add_causes_of_end(rank, program.actions()[i], step, begin_of(rank, lane, i));
        }
      }
    }
  }
  cause_begins_.push_back(causes_.size());
}

void EventOrder::add_causes_of_begin(Rank rank, Lane lane, std::size_t position, std::size_t step) {
  const LaneProgram& program = dataflow_.schedule().ranks[rank.index()].lane(lane);
  const std::size_t num_steps = dataflow_.schedule().num_steps();
  const std::size_t previous = (position == 0 ? program.actions().size() : position) - 1;
  causes_.push_back({end_of(begin_of(rank, lane, previous)), position == 0});
  std::vector<ValueRef> values;
  dataflow_.inputs(rank, program.actions()[position], values);
  for (const ValueRef& value : values) {
    const std::size_t cycles_ago = value.age > step ? (value.age - step + num_steps - 1) / num_steps : 0;
    const Event made = maker(rank, value.index, step + cycles_ago * num_steps - value.age);
    if (made != kNoEvent) causes_.push_back({end_of(made), static_cast<std::uint32_t>(cycles_ago)});
  }
}

void EventOrder::add_causes_of_end(Rank rank, const Action& action, std::size_t step, Event begin) {
  causes_.push_back({begin, 0});
  if (is_receive(action.type)) {
    const Rank from = dataflow_.peer(action);
    if (from.is_none()) return;
    const Event sent = maker(from, dataflow_.sent_value(from, dataflow_.counterpart(action)), step);
    if (sent == kNoEvent) return;
    causes_.push_back({sent, 0});
    receives_[sent / 2] = begin;
  } else if (sums_for_all(action) && action.age == 0) {
    // All meet at the end of the group's first rank.
    const std::span<const Rank> group = dataflow_.group(action);
    base::check(std::binary_search(group.begin(), group.end(), rank),
                "a collective must stand on ranks of its group: rank {}", rank.value);
    std::vector<ValueRef> made;
    for (const Rank member : rank == group.front() ? group : group.first(1)) {
      dataflow_.outputs(member, action, made);
      const Event meets = made.empty() ? kNoEvent : maker(member, made.front().index, step);
      if (meets == kNoEvent) continue;
      causes_.push_back({rank == group.front() ? meets : end_of(meets), 0});
    }
  }
}

std::span<const EventOrder::Cause> EventOrder::causes(Event event) const {
  return std::span(causes_).subspan(cause_begins_[event], cause_begins_[event + 1] - cause_begins_[event]);
}

void EventOrder::sort_events() {
  const std::size_t num_events = lane_begins_.back();
  std::vector<std::uint32_t> num_open(num_events, 0);
  std::vector<std::uint64_t> effect_begins(num_events + 1, 0);
  for (Event event = 0; event < num_events; ++event) {
    for (const Cause& cause : causes(event)) {
      if (cause.cycles_ago > 0) continue;
      ++num_open[event];
      ++effect_begins[cause.event + std::size_t{1}];
    }
  }
  for (std::size_t event = 0; event < num_events; ++event) effect_begins[event + 1] += effect_begins[event];
  std::vector<Event> effects(effect_begins.back());
  std::vector<std::uint64_t> filled(effect_begins.begin(), effect_begins.end() - 1);
  for (Event event = 0; event < num_events; ++event) {
    for (const Cause& cause : causes(event)) {
      if (cause.cycles_ago == 0) effects[filled[cause.event]++] = event;
    }
  }
  for (Event event = 0; event < num_events; ++event) {
    if (num_open[event] == 0) order_.push_back(event);
  }
  for (std::size_t next = 0; next < order_.size(); ++next) {
    const Event event = order_[next];
    for (std::uint64_t i = effect_begins[event]; i < effect_begins[event + std::size_t{1}]; ++i) {
      if (--num_open[effects[i]] == 0) order_.push_back(effects[i]);
    }
  }
  base::check(order_.size() == num_events, "the schedule does not run to its end: {} of {} events happen",
              order_.size(), num_events);
}

EventOrder::WatchedLane EventOrder::watched_lane(Rank rank, Lane lane) const {
  const std::size_t length = dataflow_.schedule().ranks[rank.index()].lane(lane).actions().size();
  return {begin_of(rank, lane, 0), static_cast<std::int64_t>(length)};
}

EventOrder::Knowledge EventOrder::know(std::vector<WatchedLane> watched) const {
  const std::size_t num_steps = dataflow_.schedule().num_steps();
  Knowledge known{.lanes = std::move(watched),
                  .num_events = lane_begins_.back(),
                  .num_cycles = 1 + (kStepsBefore + num_steps - 1) / num_steps};
  const std::size_t num_lanes = known.lanes.size();
  known.ended.assign(known.num_cycles * known.num_events * num_lanes, 0);
  for (std::size_t cycle = 0; cycle < known.num_cycles; ++cycle) {
    for (const Event event : order_) {
      std::int32_t* own = known.ended.data() + known.at(cycle, event);
      for (const Cause& cause : causes(event)) {
        if (cause.cycles_ago > cycle) continue;
        const std::int32_t* earlier = known.ended.data() + known.at(cycle - cause.cycles_ago, cause.event);
        for (std::size_t i = 0; i < num_lanes; ++i) own[i] = std::max(own[i], earlier[i]);
      }
      if (event % 2 == 0) continue;
      for (std::size_t i = 0; i < num_lanes; ++i) {
        const WatchedLane& lane = known.lanes[i];
        if (!lane.holds(event)) continue;
        own[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(cycle) * lane.length +
                                           (event - lane.first) / 2 + 1);
      }
    }
  }
  return known;
}

std::int64_t EventOrder::first_that_knows(Rank rank, const Knowledge& known, std::size_t watched,
                                          Event ended) const {
  const auto num_computed = static_cast<std::int64_t>(
      dataflow_.schedule().ranks[rank.index()].lane(Lane::Compute).actions().size());
  const WatchedLane& lane = known.lanes[watched];
  const std::int64_t count = (ended - lane.first) / 2 + 1;
  for (std::int64_t cycle = 0; cycle <= static_cast<std::int64_t>(known.num_cycles); ++cycle) {
    for (std::int64_t i = 0; i < num_computed; ++i) {
      const Event begin = begin_of(rank, Lane::Compute, static_cast<std::size_t>(i));
      const std::optional<std::int64_t> num_ended = known.in_last_cycle(begin, watched);
      if (num_ended && *num_ended + cycle * lane.length >= count) return cycle * num_computed + i;
    }
  }
  base::check(false, "a message of rank {} is never known to have come", rank.value);
  return 0;
}

MessageBounds EventOrder::message_bounds(Rank rank) const {
  const std::span<const Action> messages =
      dataflow_.schedule().ranks[rank.index()].lane(Lane::Pipeline).actions();
  std::vector<WatchedLane> watched = {watched_lane(rank, Lane::Compute)};
  for (const Action& message : messages) {
    if (!is_send(message.type)) continue;
    const Rank receiver = dataflow_.peer(message);
    base::check(!receiver.is_none(), "a message of rank {} goes nowhere", rank.value);
    const WatchedLane lane = watched_lane(receiver, Lane::Pipeline);
    if (std::find(watched.begin(), watched.end(), lane) == watched.end()) watched.push_back(lane);
  }
  const Knowledge known = know(std::move(watched));

  MessageBounds bounds{std::vector<std::int64_t>(messages.size(), 0),
                       std::vector<std::int64_t>(messages.size(), 0)};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Event begin = begin_of(rank, Lane::Pipeline, i);
    if (is_receive(messages[i].type)) {
      const std::optional<std::int64_t> num_ended = known.in_last_cycle(begin, 0);
      base::check(num_ended.has_value(), "a receive of rank {} waits for nothing of the rank", rank.value);
      bounds.posted_after[i] = *num_ended;
      continue;
    }
    const Event received = receives_[begin / 2];
    base::check(received != kNoEvent, "a message of rank {} has no receiver", rank.value);
    const auto lane = std::find(known.lanes.begin(), known.lanes.end(),
                                watched_lane(dataflow_.peer(messages[i]), Lane::Pipeline));
    bounds.received_before[i] =
        first_that_knows(rank, known, static_cast<std::size_t>(lane - known.lanes.begin()), received);
  }
  return bounds;
}

}  // namespace plenum::schedule
