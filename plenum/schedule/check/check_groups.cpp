#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"

namespace plenum::schedule {
namespace {

/// An action's bytes, which have no gaps, as a key.
using ActionKey = std::array<std::uint64_t, 2>;

struct GroupAttendance {
  Action action;
  std::vector<Rank> present;  ///< ascending
  ActionPlace first;
};

/// The first rank of the group that is not present.
Rank absent_rank(std::span<const Rank> group, const std::vector<Rank>& present) {
  for (const Rank rank : group) {
    if (!std::binary_search(present.begin(), present.end(), rank)) return rank;
  }
  return Rank::none();
}

}  // namespace

void find_incomplete_groups(RuleContext& context) {
  const Schedule& schedule = context.schedule;
  std::map<ActionKey, GroupAttendance> meetings;
  for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
    meetings.clear();
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (const Lane lane : {Lane::DataParallel, Lane::Copy}) {
        for_each_action_of(schedule, Rank::at(rank), lane, step,
                           [&](const ActionPlace& place, const Action& action) {
                             GroupAttendance& attendance = meetings[std::bit_cast<ActionKey>(action)];
                             if (attendance.present.empty()) {
                               attendance.action = action;
                               attendance.first = place;
                             }
                             attendance.present.push_back(place.rank);
                           });
      }
    }
    for (const auto& [key, attendance] : meetings) {
      const Rank absent = absent_rank(context.dataflow.group(attendance.action), attendance.present);
      if (absent.is_none()) continue;
      context.add(attendance.first, fmt::format("rank {} does not take part in this step", absent.value));
    }
  }
}

}  // namespace plenum::schedule
