#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::plan {

/// An action of a replay's last cycle, or by periodicity of a cycle before it.
struct ReplayedAction {
  schedule::Rank rank;
  schedule::Lane lane = schedule::Lane::Compute;
  std::size_t position = 0;  ///< in LaneProgram::actions()
  std::int64_t cycle = 0;    ///< 0: the last one, -1: the one before
};

/// Says of the actions of a schedule in its steady state what they waited for.
class IdleCauses {
 public:
  /// Borrows all. The replay must have run to its end.
  IdleCauses(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow,
             const schedule::ReplayResult& replay);

  const schedule::Action& action(const ReplayedAction& place) const;
  schedule::ActionTime time(const ReplayedAction& place) const;
  double period() const { return replay_.end - replay_.begin; }

  /// What was last to end of all that an action needs on its own rank: the action before it in its lane, or
  /// the maker of an input. Nothing where it needs nothing.
  std::optional<ReplayedAction> last_need(const ReplayedAction& place);
  /// The member of a collective's group that is the last to have what it needs.
  schedule::Rank last_to_come(const ReplayedAction& collective);

 private:
  struct Maker {
    std::uint32_t position = 0;
    schedule::Lane lane = schedule::Lane::Compute;
    std::int32_t step = 0;  ///< to which what it makes belongs, counted from the begin of the cycle
    bool is_known = false;
  };
  /// Type, stage, layers, micro-batch, factor, age and step: which meeting of a cycle.
  using Meeting = std::tuple<int, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, std::size_t>;

  const schedule::LaneProgram& program(const ReplayedAction& place) const;
  std::int64_t step_of(const ReplayedAction& place) const;
  const std::vector<Maker>& makers_of(schedule::Rank rank);
  /// Who makes a value that belongs to a step, counted from the begin of the last cycle.
  std::optional<ReplayedAction> maker(schedule::Rank rank, std::uint32_t value, std::int64_t step);
  /// Where the same collective stands on another rank.
  std::optional<ReplayedAction> part_of(schedule::Rank rank, const ReplayedAction& collective);
  double ready(const ReplayedAction& place);

  const schedule::Schedule& schedule_;
  const schedule::Dataflow& dataflow_;
  const schedule::ReplayResult& replay_;
  std::int64_t num_steps_;
  std::vector<std::vector<Maker>> makers_;  ///< of each rank, by value and step of the cycle
  std::map<Meeting, schedule::Rank> last_to_come_;
};

}  // namespace plenum::plan
