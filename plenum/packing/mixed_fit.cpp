#include "plenum/packing/mixed_fit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "plenum/packing/length_runs.h"

namespace plenum::packing {

void append_mixed_fit(std::vector<std::uint64_t> remaining, std::int64_t num_short, PackingPlan& plan) {
  std::vector<std::int32_t> lengths;  // those that remain, descending
  for (std::size_t length = remaining.size(); length > 1; --length) {
    if (remaining[length - 1] > 0) lengths.push_back(static_cast<std::int32_t>(length - 1));
  }
  while (!lengths.empty()) {
    std::vector<std::int32_t> pattern;
    std::int64_t tokens = plan.capacity;
    const auto take = [&](std::int32_t length, std::int64_t copies) {
      const std::int64_t room = plan.depth - static_cast<std::int64_t>(pattern.size());
      std::uint64_t& available = remaining[static_cast<std::size_t>(length)];
      const std::uint64_t taken =
          std::min(available, static_cast<std::uint64_t>(std::min({copies, tokens / length, room})));
      available -= taken;
      tokens -= static_cast<std::int64_t>(taken) * length;
      pattern.insert(pattern.end(), taken, length);
      return static_cast<std::int64_t>(taken);
    };
    take(lengths.front(), 1);
    std::int64_t short_left = num_short;
    for (auto length = lengths.rbegin(); length != lengths.rend() && short_left > 0; ++length) {
      if (*length > tokens) break;
      short_left -= take(*length, short_left);
    }
    // Jumps over what is too long, for there may be tens of thousands of lengths.
    for (auto length = lengths.begin(); tokens > 0; ++length) {
      length = std::lower_bound(length, lengths.end(), tokens, std::greater<>());
      if (length == lengths.end() || static_cast<std::int64_t>(pattern.size()) == plan.depth) break;
      take(*length, plan.depth);
    }
    std::sort(pattern.begin(), pattern.end(), std::greater<>());
    std::uint64_t more = std::numeric_limits<std::uint64_t>::max();
    for_each_run(pattern, [&](std::size_t length, std::uint64_t copies) {
      more = std::min(more, remaining[length] / copies);
    });
    for_each_run(pattern, [&](std::size_t length, std::uint64_t copies) {
      remaining[length] -= more * copies;
      if (remaining[length] > 0) return;
      lengths.erase(std::lower_bound(lengths.begin(), lengths.end(), static_cast<std::int32_t>(length),
                                     std::greater<>()));
    });
    plan.patterns.push_back({std::move(pattern), more + 1});
  }
}

}  // namespace plenum::packing
