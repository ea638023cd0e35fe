#include "plenum/schedule/simulate/replay.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "plenum/base/check.h"
#include "plenum/schedule/simulate/checked_costs.h"

namespace plenum::schedule {
namespace {

/// A value of one step: when it exists.
struct Cell {
  double ready = 0;
  std::int32_t step = -1;
};

/// Which collective of which step: two ranks meet in it if all of this is equal.
struct Meeting {
  Action action;
  std::int32_t step = 0;
  friend bool operator==(const Meeting&, const Meeting&) = default;
};

struct MeetingHash {
  std::size_t operator()(const Meeting& meeting) const {
    const Action& a = meeting.action;
    std::uint64_t hash = static_cast<std::uint64_t>(a.type) | std::uint64_t{a.stage.value} << 8 |
                         std::uint64_t{a.first_layer.value} << 24 | std::uint64_t{a.end_layer.value} << 40 |
                         std::uint64_t{a.age} << 56;
    hash ^= (std::uint64_t{a.factor} << 32 | static_cast<std::uint32_t>(meeting.step)) * 0x9E3779B97F4A7C15u;
    hash *= 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
  }
};

struct Attendance {
  std::size_t num_present = 0;
  double ready = 0;
};

constexpr auto kPipeline = static_cast<std::size_t>(Lane::Pipeline);

struct LaneState {
  std::size_t position = 0;  ///< in actions()
  std::size_t step_end = 0;  ///< the position at which the running step ends
  std::size_t step = 0;      ///< from the start of the replay
  double free = 0;
  std::array<double, 3> step_ended = {};  ///< when the lane came to the end of each of the last three steps
  std::optional<ValueRef> missing;
  bool is_present = false;  ///< has come to its collective or message and waits for the others
  double present_since = 0;
};

class Replay {
 public:
  Replay(const Schedule& schedule, const Dataflow& dataflow, const CostModel& costs, std::size_t num_cycles,
         MessageOrder message_order)
      : schedule_(schedule),
        dataflow_(dataflow),
        costs_(costs),
        message_order_(message_order),
        num_steps_(num_cycles * schedule.num_steps()),
        // The oldest values that are read, those of the step itself, and those of the step ahead that one
        // lane of the rank may be in while another still reads the oldest.
        ring_(dataflow.max_age() + 2),
        lanes_(schedule.ranks.size()),
        cells_(schedule.ranks.size()),
        is_pending_(schedule.ranks.size(), true) {
    result_.times.resize(schedule.ranks.size());
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      cells_[rank].resize(dataflow.num_values(Rank::at(rank)) * ring_);
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        const LaneProgram& program = schedule.ranks[rank].lanes[lane];
        result_.times[rank][lane].resize(program.actions().size());
        lanes_[rank][lane].step_end = program.step(0).size();
      }
      if (message_order == MessageOrder::Free) {
        lanes_[rank][kPipeline].step_end = 0;
        lanes_[rank][kPipeline].step = num_steps_;
      }
    }
    for (std::size_t rank = schedule.ranks.size(); rank > 0; --rank) pending_.push_back(Rank::at(rank - 1));
  }

  ReplayResult run() {
    while (!pending_.empty()) {
      const Rank rank = pending_.back();
      pending_.pop_back();
      is_pending_[rank.index()] = false;
      run_rank(rank);
    }
    collect_blocked();
    return std::move(result_);
  }

 private:
  /// The values of one step lie together: those of one micro-batch are used at about the same time.
  Cell& cell(Rank rank, std::uint32_t index, std::int64_t step) {
    const std::size_t slot = static_cast<std::size_t>(step) % ring_;
    return cells_[rank.index()][slot * dataflow_.num_values(rank) + index];
  }

  /// When the value exists; nothing if it does not yet. Values of steps before the first exist from the
  /// start.
  std::optional<double> ready(Rank rank, std::uint32_t index, std::int64_t step) {
    if (step < 0) return 0.0;
    const Cell& found = cell(rank, index, step);
    if (found.step != step) return std::nullopt;
    return found.ready;
  }

  void wake(Rank rank) {
    if (is_pending_[rank.index()]) return;
    is_pending_[rank.index()] = true;
    pending_.push_back(rank);
  }

  void run_rank(Rank rank) {
    for (bool has_progressed = true; has_progressed;) {
      has_progressed = false;
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        while (run_next(rank, lane)) has_progressed = true;
      }
    }
  }

  /// Moves on to the next step where this one is at its end; false at the end of the replay.
  bool is_at_action(const LaneProgram& program, LaneState& state) const {
    while (state.position == state.step_end) {
      if (state.step == num_steps_) return false;
      state.step_ended[state.step % state.step_ended.size()] = state.free;
      const std::size_t step_of_cycle = ++state.step % schedule_.num_steps();
      if (step_of_cycle == 0) state.position = 0;
      state.step_end = state.step == num_steps_ ? state.position : program.step_end(step_of_cycle);
    }
    return true;
  }

  /// Whether another lane of the rank is still two steps or more behind. A lane waits then: what it would
  /// make has no place yet.
  bool is_too_far_ahead(Rank rank, const LaneState& state) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      LaneState& other = lanes_[rank.index()][lane];
      if (other.step + 1 >= state.step) continue;
      if (is_at_action(schedule_.ranks[rank.index()].lanes[lane], other) && other.step + 1 < state.step) {
        return true;
      }
    }
    return false;
  }

  /// When the lane may begin its step: not before all lanes of the rank have ended the step before the last.
  double step_may_begin(Rank rank, const LaneState& state) const {
    double begin = state.free;
    if (state.step < 2) return begin;
    for (const LaneState& other : lanes_[rank.index()]) {
      begin = std::max(begin, other.step_ended[(state.step - 2) % other.step_ended.size()]);
    }
    return begin;
  }

  bool run_next(Rank rank, std::size_t lane) {
    LaneState& state = lanes_[rank.index()][lane];
    const LaneProgram& program = schedule_.ranks[rank.index()].lanes[lane];
    if (!is_at_action(program, state) || state.is_present || is_too_far_ahead(rank, state)) return false;
    const auto step = static_cast<std::int64_t>(state.step);
    if (state.missing && !ready(rank, state.missing->index, step - state.missing->age)) return false;
    const Action& action = program.actions()[state.position];

    dataflow_.inputs(rank, action, values_);
    state.missing.reset();
    const bool is_first = state.position == program.step_begin(state.step % schedule_.num_steps());
    double start = is_first ? step_may_begin(rank, state) : state.free;
    for (const ValueRef& value : values_) {
      const std::optional<double> time = ready(rank, value.index, step - value.age);
      if (!time) {
        state.missing = value;
        return false;
      }
      start = std::max(start, *time);
    }
    if (lane == kPipeline) return meet(rank, action, start);
    if (traits_of(action.type).is_collective) return attend(rank, lane, action, start);
    const double end = start + checked_seconds(costs_, rank, action);
    finish(rank, lane, action, {start, end});
    if (message_order_ == MessageOrder::Free) deliver(rank, action, step, end);
    return true;
  }

  /// Comes to a message. The second of the two to come finishes it for both.
  bool meet(Rank rank, const Action& action, double start) {
    LaneState& state = lanes_[rank.index()][kPipeline];
    state.is_present = true;
    state.present_since = start;
    const Rank peer = dataflow_.peer(action);
    if (peer.is_none()) return false;
    LaneState& other = lanes_[peer.index()][kPipeline];
    if (!other.is_present || other.step != state.step) return false;
    const Action awaited = dataflow_.counterpart(action);
    if (schedule_.ranks[peer.index()].lane(Lane::Pipeline).actions()[other.position] != awaited) return false;
    const bool sends = is_send(action.type);
    const double begin = std::max(start, other.present_since);
    const double end =
        begin + (sends
                     ? checked_seconds(costs_, rank, action) + checked_latency_seconds(costs_, rank, peer)
                     : checked_seconds(costs_, peer, awaited) + checked_latency_seconds(costs_, peer, rank));
    finish(rank, kPipeline, action, {begin, end});
    finish(peer, kPipeline, awaited, {begin, end});
    state.is_present = other.is_present = false;
    wake(peer);
    return true;
  }

  /// Gives another rank what a computation made for it.
  void deliver(Rank rank, const Action& action, std::int64_t step, double time) {
    const std::optional<Action> send = message_after(action, dataflow_.layers());
    if (!send) return;
    const Rank to = dataflow_.peer(*send);
    if (to.is_none() || to == rank) return;
    const double arrival =
        time + checked_seconds(costs_, rank, *send) + checked_latency_seconds(costs_, rank, to);
    dataflow_.outputs(to, dataflow_.counterpart(*send), values_);
    for (const ValueRef& value : values_) {
      cell(to, value.index, step) = {arrival, static_cast<std::int32_t>(step)};
    }
    wake(to);
  }

  /// Comes to a collective. The last of the group to come finishes it for all.
  bool attend(Rank rank, std::size_t lane, const Action& action, double start) {
    const std::span<const Rank> group = dataflow_.group(action);
    if (!std::binary_search(group.begin(), group.end(), rank)) return false;
    LaneState& state = lanes_[rank.index()][lane];
    const Meeting meeting{action, static_cast<std::int32_t>(state.step)};
    Attendance& attendance = meetings_[meeting];
    ++attendance.num_present;
    attendance.ready = std::max(attendance.ready, start);
    state.is_present = true;
    if (attendance.num_present < group.size()) return false;
    const double begin = attendance.ready;
    const double end = begin + checked_seconds(costs_, rank, action);
    meetings_.erase(meeting);
    for (const Rank member : group) {
      finish(member, lane, action, {begin, end});
      lanes_[member.index()][lane].is_present = false;
      wake(member);
    }
    return true;
  }

  void finish(Rank rank, std::size_t lane, const Action& action, ActionTime time) {
    LaneState& state = lanes_[rank.index()][lane];
    result_.times[rank.index()][lane][state.position] = time;
    state.free = time.end;
    dataflow_.outputs(rank, action, values_);
    const auto step = static_cast<std::int64_t>(state.step);
    for (const ValueRef& value : values_) {
      if (step < value.age) continue;
      cell(rank, value.index, step - value.age) = {time.end, static_cast<std::int32_t>(step - value.age)};
    }
    double& latest = state.step < num_steps_ - schedule_.num_steps() ? result_.begin : result_.end;
    latest = std::max(latest, time.end);
    ++state.position;
  }

  void collect_blocked() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        LaneState& state = lanes_[rank][lane];
        if (!is_at_action(schedule_.ranks[rank].lanes[lane], state)) continue;
        result_.blocked.push_back(
            {Rank::at(rank), static_cast<Lane>(lane), state.position, state.step, state.missing});
      }
    }
  }

  const Schedule& schedule_;
  const Dataflow& dataflow_;
  const CostModel& costs_;
  MessageOrder message_order_;
  std::size_t num_steps_;
  std::size_t ring_;
  std::vector<std::array<LaneState, kNumLanes>> lanes_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<Rank> pending_;
  std::vector<bool> is_pending_;
  std::unordered_map<Meeting, Attendance, MeetingHash> meetings_;
  std::vector<ValueRef> values_;
  ReplayResult result_;
};

}  // namespace

std::size_t num_cycles_to_steady_state(const Dataflow& dataflow) {
  const std::size_t num_steps = dataflow.schedule().num_steps();
  return (dataflow.max_age() + num_steps - 1) / num_steps + 1;
}

ReplayResult replay(const Schedule& schedule, const Dataflow& dataflow, const CostModel& costs,
                    std::size_t num_cycles, MessageOrder message_order) {
  base::check(num_cycles > 0, "a replay needs a cycle");
  return Replay(schedule, dataflow, costs, num_cycles, message_order).run();
}

}  // namespace plenum::schedule
