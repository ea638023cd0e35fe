#include "plenum/data/tasks/windows.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::data {

std::vector<TextWindow> cut_windows(std::int32_t num_tokens, std::int32_t room, std::int32_t stride) {
  base::check(stride >= 0 && stride < room, "windows must advance: room={} stride={}", room, stride);
  std::vector<TextWindow> windows;
  std::int32_t begin = 0;
  while (true) {
    const std::int32_t end = std::min(begin + room, num_tokens);
    windows.push_back({begin, end});
    if (end == num_tokens) return windows;
    begin += room - stride;
  }
}

std::size_t widest_context(std::int32_t token, std::span<const TextWindow> windows) {
  std::size_t best = windows.size();
  std::int32_t most = -1;
  // Those that the token lies in are neighbours.
  const auto first =
      std::ranges::partition_point(windows, [&](TextWindow window) { return window.end <= token; });
  for (auto window = first; window != windows.end() && window->begin <= token; ++window) {
    const std::int32_t context = std::min(token - window->begin, window->end - 1 - token);
    if (context > most) {
      most = context;
      best = static_cast<std::size_t>(window - windows.begin());
    }
  }
  base::check(best < windows.size(), "a token must lie in a window: {}", token);
  return best;
}

std::pair<std::int32_t, std::int32_t> truncate_longest_first(std::int32_t first, std::int32_t second,
                                                             std::int32_t room) {
  if (first + second <= room) return {first, second};
  const std::int32_t shorter = std::min(first, second);
  std::int32_t kept_shorter = shorter;
  std::int32_t kept_longer = room - shorter;
  if (kept_longer < shorter) {
    kept_shorter = room / 2;
    kept_longer = room - kept_shorter;
  }
  return first <= second ? std::pair{kept_shorter, kept_longer} : std::pair{kept_longer, kept_shorter};
}

}  // namespace plenum::data
