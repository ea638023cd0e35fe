#include "plenum/data/batches/rank_division.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {

std::vector<std::vector<std::size_t>> divide_among_ranks(std::span<const double> costs,
                                                         std::size_t num_ranks) {
  base::check(num_ranks >= 1, "there must be a rank: ranks={}", num_ranks);
  const std::size_t most = (costs.size() + num_ranks - 1) / num_ranks;
  std::vector<std::size_t> dearest_first(costs.size());
  std::iota(dearest_first.begin(), dearest_first.end(), std::size_t{0});
  std::stable_sort(dearest_first.begin(), dearest_first.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> with_room;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) with_room.emplace(0.0, rank);
  std::vector<std::vector<std::size_t>> items_of(num_ranks);
  for (const std::size_t item : dearest_first) {
    const auto [load, rank] = with_room.top();
    with_room.pop();
    items_of[rank].push_back(item);
    if (items_of[rank].size() < most) with_room.emplace(load + costs[item], rank);
  }
  for (std::vector<std::size_t>& items : items_of) std::sort(items.begin(), items.end());
  return items_of;
}

}  // namespace plenum::data
