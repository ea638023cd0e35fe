#include "plenum/schedule/fill/kept_memory.h"

#include <algorithm>
#include <cmath>

namespace plenum::schedule {
namespace {

/// Bytes that a rank begins or ceases to keep, on the circle of a cycle.
struct Change {
  double time = 0;
  double bytes = 0;
};

struct RankMemory {
  double at_begin = 0;  ///< kept from the cycle before
  std::vector<Change> changes = {};
};

void keep(RankMemory& memory, double from, double until, double bytes, double cycle_seconds) {
  const double num_whole = std::floor((until - from) / cycle_seconds);
  const double begin = from - std::floor(from / cycle_seconds) * cycle_seconds;
  const double end = begin + (until - from) - num_whole * cycle_seconds;
  const bool wraps = end > cycle_seconds;
  memory.at_begin += (num_whole + (wraps ? 1 : 0)) * bytes;
  memory.changes.push_back({begin, bytes});
  memory.changes.push_back({wraps ? end - cycle_seconds : end, -bytes});
}

double peak(RankMemory& memory) {
  std::sort(memory.changes.begin(), memory.changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  double now = memory.at_begin;
  double most = now;
  for (const Change& change : memory.changes) most = std::max(most, now += change.bytes);
  return most;
}

}  // namespace

std::vector<double> peak_kept_bytes(const SteadyStep& step, const Refresh& refresh,
                                    const Placement& placement, const CycleShape& shape) {
  const double cycle_seconds = step.seconds() * static_cast<double>(shape.num_steps);
  const std::vector<Refresh::Item>& items = refresh.items();
  std::vector<RankMemory> ranks(step.schedule().ranks.size());
  for (std::size_t r = 0; r < shape.num_refreshes; ++r) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const double begin = static_cast<double>(shape.statistics_step(r) + items[i].step) * step.seconds();
      double from = begin + items[i].kept_from;
      for (const std::uint32_t predecessor : items[i].predecessors) {
        from = std::min(from, placement.last[r * items.size() + predecessor].end);
      }
      const double until = placement.last[r * items.size() + i].end;
      if (until <= from || items[i].work.kept_bytes == 0) continue;
      for (const Rank rank : items[i].ranks) {
        keep(ranks[rank.index()], from, until, items[i].work.kept_bytes, cycle_seconds);
      }
    }
  }
  std::vector<double> peaks;
  for (RankMemory& memory : ranks) peaks.push_back(peak(memory));
  return peaks;
}

}  // namespace plenum::schedule
