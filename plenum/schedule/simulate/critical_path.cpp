#include "plenum/schedule/simulate/critical_path.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

constexpr std::uint32_t kNoMaker = std::numeric_limits<std::uint32_t>::max();

class BackwardWalk {
 public:
  BackwardWalk(const Schedule& schedule, const Dataflow& dataflow, const ReplayResult& replay)
      : schedule_(schedule),
        dataflow_(dataflow),
        replay_(replay),
        num_steps_(schedule.num_steps() + dataflow.max_age()),
        makers_(schedule.ranks.size()) {}

  std::vector<CriticalAction> run() {
    std::vector<CriticalAction> path;
    for (std::optional<CriticalAction> next = last_to_end(); next; next = predecessor(*next)) {
      path.push_back(*next);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  const Action& action_at(const CriticalAction& place) const {
    return program(place).actions()[place.position];
  }
  const LaneProgram& program(const CriticalAction& place) const {
    return schedule_.ranks[place.rank.index()].lane(place.lane);
  }
  const ActionTime& time_of(const CriticalAction& place) const {
    return replay_.times[place.rank.index()][static_cast<std::size_t>(place.lane)][place.position];
  }

  std::optional<CriticalAction> last_to_end() const {
    std::optional<CriticalAction> last;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        const std::size_t num_actions = replay_.times[rank][lane].size();
        if (num_actions == 0) continue;
        const CriticalAction candidate{Rank::at(rank), static_cast<Lane>(lane), num_actions - 1};
        if (!last || time_of(candidate).end > time_of(*last).end) last = candidate;
      }
    }
    return last;
  }

  /// The action of this cycle that the one at `place` began right after; nothing if there is none.
  std::optional<CriticalAction> predecessor(const CriticalAction& place) {
    const Action& action = action_at(place);
    const double start = time_of(place).start;
    if (const auto found = local_predecessor(place, start)) return found;
    if (place.lane == Lane::Pipeline) {
      const Rank peer = dataflow_.peer(action);
      return local_predecessor(part_of(peer, dataflow_.counterpart(action), step_of(place)), start);
    }
    if (!traits_of(action.type).is_collective) return std::nullopt;
    for (const Rank member : dataflow_.group(action)) {
      if (member == place.rank) continue;
      if (const auto found = local_predecessor(part_of(member, action, step_of(place)), start)) return found;
    }
    return std::nullopt;
  }

  /// Where an action of a step stands on a rank that takes part in a message or collective.
  CriticalAction part_of(Rank rank, const Action& action, std::size_t step) {
    dataflow_.outputs(rank, action, values_);
    const auto found = maker(rank, values_.front(), step);
    base::check(found.has_value(), "a message or collective must stand on every rank that has a part in it");
    return *found;
  }

  /// The action before it in its lane, or the maker of an input on its own rank, that ended at `start`.
  std::optional<CriticalAction> local_predecessor(const CriticalAction& place, double start) {
    const CriticalAction before{place.rank, place.lane, place.position - 1};
    if (place.position > 0 && time_of(before).end == start) return before;
    dataflow_.inputs(place.rank, action_at(place), values_);
    for (const ValueRef& value : values_) {
      const auto found = maker(place.rank, value, step_of(place));
      if (found && time_of(*found).end == start) return found;
    }
    return std::nullopt;
  }

  std::size_t step_of(const CriticalAction& place) const { return program(place).step_of(place.position); }

  /// Steps are counted from the oldest that actions of this cycle work on.
  std::size_t key(const ValueRef& value, std::size_t step) const {
    return value.index * num_steps_ + step + dataflow_.max_age() - value.age;
  }

  /// Who made the value that an action in `step` refers to, if it was in this cycle.
  std::optional<CriticalAction> maker(Rank rank, const ValueRef& value, std::size_t step) {
    const Maker& found = makers_of(rank)[key(value, step)];
    if (found.position == kNoMaker) return std::nullopt;
    return CriticalAction{rank, found.lane, found.position};
  }

  struct Maker {
    std::uint32_t position = kNoMaker;
    Lane lane = Lane::Compute;
  };

  /// The makers of all values of a rank, looked up when the walk first comes there.
  const std::vector<Maker>& makers_of(Rank rank) {
    std::vector<Maker>& makers = makers_[rank.index()];
    if (!makers.empty()) return makers;
    makers.resize(dataflow_.num_values(rank) * num_steps_);
    std::vector<ValueRef> made;
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const LaneProgram& program = schedule_.ranks[rank.index()].lanes[lane];
      for (std::size_t step = 0; step < program.num_steps(); ++step) {
        auto position = static_cast<std::uint32_t>(program.step_begin(step));
        for (const Action& action : program.step(step)) {
          dataflow_.outputs(rank, action, made);
          for (const ValueRef& value : made) makers[key(value, step)] = {position, static_cast<Lane>(lane)};
          ++position;
        }
      }
    }
    return makers;
  }

  const Schedule& schedule_;
  const Dataflow& dataflow_;
  const ReplayResult& replay_;
  std::size_t num_steps_;
  std::vector<std::vector<Maker>> makers_;
  std::vector<ValueRef> values_;
};

}  // namespace

std::vector<CriticalAction> critical_path(const Schedule& schedule, const Dataflow& dataflow,
                                          const ReplayResult& replay) {
  base::check(replay.blocked.empty(), "a critical path needs a replay that ran to its end");
  return BackwardWalk(schedule, dataflow, replay).run();
}

}  // namespace plenum::schedule
