#include "plenum/packing/first_fit.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace plenum::packing {

void append_first_fit(std::vector<std::uint64_t> remaining, PackingPlan& plan) {
  std::vector<std::int32_t> lengths;  // those that remain, descending
  for (std::size_t length = remaining.size(); length > 1; --length) {
    if (remaining[length - 1] > 0) lengths.push_back(static_cast<std::int32_t>(length - 1));
  }
  while (!lengths.empty()) {
    PackPattern pattern{.lengths = {}, .count = std::numeric_limits<std::uint64_t>::max()};
    std::int64_t tokens = plan.capacity;
    std::int64_t sequences = plan.depth;
    for (const std::int32_t length : lengths) {
      const std::uint64_t available = remaining[static_cast<std::size_t>(length)];
      const auto copies =
          std::min(available, static_cast<std::uint64_t>(std::min(tokens / length, sequences)));
      if (copies == 0) continue;
      pattern.lengths.insert(pattern.lengths.end(), copies, length);
      pattern.count = std::min(pattern.count, available / copies);
      tokens -= static_cast<std::int64_t>(copies) * length;
      sequences -= static_cast<std::int64_t>(copies);
      if (tokens == 0 || sequences == 0) break;
    }
    for (const std::int32_t length : pattern.lengths)
      remaining[static_cast<std::size_t>(length)] -= pattern.count;
    std::erase_if(lengths,
                  [&](std::int32_t length) { return remaining[static_cast<std::size_t>(length)] == 0; });
    plan.patterns.push_back(std::move(pattern));
  }
}

}  // namespace plenum::packing
