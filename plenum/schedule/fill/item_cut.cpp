#include "plenum/schedule/fill/item_cut.h"

#include <algorithm>
#include <cmath>

#include "plenum/schedule/simulate/checked_costs.h"

namespace plenum::schedule {
namespace {

/// A cut must leave less than this part of what stays empty without it.
constexpr double kWorthCutting = 0.5;
/// Gaps that together make less than this part of a rank's idle time do not count.
constexpr double kNegligible = 0.05;

/// An item of which even the shortest pieces are too long for that gap is still cut, for the longer ones.
std::size_t fewest_pieces(double seconds, double short_gap, std::size_t max_pieces) {
  const double wanted = short_gap > 0 ? std::ceil(seconds / short_gap) : 2;
  return std::max<std::size_t>(2,
                               static_cast<std::size_t>(std::min(wanted, static_cast<double>(max_pieces))));
}

}  // namespace

double shortest_counting_gap(std::span<const Gap> gaps) {
  std::vector<double> lengths;
  double total = 0;
  for (const Gap& gap : gaps) {
    lengths.push_back(gap.end - gap.begin);
    total += lengths.back();
  }
  std::sort(lengths.begin(), lengths.end());
  double sum = 0;
  for (const double length : lengths) {
    sum += length;
    if (sum > kNegligible * total) return length;
  }
  return 0;
}

std::optional<ItemCut> find_cut(const ReadyPool& pool, const Refresh& refresh, const CostModel& costs,
                                Rank rank, double room, double waste, double enough, double short_gap) {
  ItemCut best{.waste = kWorthCutting * waste};
  for (std::size_t i = 0; i < pool.lengths().size() && best.waste > enough; ++i) {
    const ReadyPool::Length& length = pool.lengths()[i];
    if (length.items.front().num_pieces > 1) continue;
    const WorkItem& work = refresh.items()[length.items.front().item].work;
    for (std::size_t num_pieces = fewest_pieces(length.seconds, short_gap, work.max_pieces);
         num_pieces <= work.max_pieces && best.waste > enough; ++num_pieces) {
      Action action = work.action;
      action.num_pieces = static_cast<std::uint8_t>(num_pieces);
      const double seconds = checked_seconds(costs, rank, action);
      if (seconds <= 0 || seconds > room) continue;
      const std::size_t num_now = std::min(num_pieces - 1, static_cast<std::size_t>(room / seconds));
      const double rest = room - static_cast<double>(num_now) * seconds;
      const double left = pool.least_waste(rest, enough, i);
      if (left < best.waste) best = {i, num_pieces, num_now, seconds, left};
    }
  }
  if (best.num_now == 0) return std::nullopt;
  return best;
}

}  // namespace plenum::schedule
