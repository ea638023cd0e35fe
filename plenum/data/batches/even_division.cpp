#include "plenum/data/batches/even_division.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

/// What nobody waits for: a part may have so much more than the mean.
constexpr double kGoodEnough = 1e-4;

/// Items of one part, from the cheapest to the dearest, and what they cost.
struct Share {
  std::vector<std::size_t> items;
  double load = 0;
};

/// From the dearest item to the cheapest, each to the part that has the least so far and room.
std::vector<Share> longest_first(std::span<const double> costs, std::size_t num_parts) {
  const std::size_t most = (costs.size() + num_parts - 1) / num_parts;
  std::vector<std::size_t> dearest_first(costs.size());
  std::iota(dearest_first.begin(), dearest_first.end(), std::size_t{0});
  std::stable_sort(dearest_first.begin(), dearest_first.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> with_room;
  for (std::size_t part = 0; part < num_parts; ++part) with_room.emplace(0.0, part);
  std::vector<Share> shares(num_parts);
  for (const std::size_t item : dearest_first) {
    const std::size_t part = with_room.top().second;
    with_room.pop();
    Share& share = shares[part];
    share.items.push_back(item);
    share.load += costs[item];
    if (share.items.size() < most) with_room.emplace(share.load, part);
  }
  for (Share& share : shares) std::ranges::reverse(share.items);
  return shares;
}

/// Evens the loads out by exchanging items between the part that has the most and another, one for one, as
/// long as that lowers the most of both.
class Exchanges {
 public:
  /// Borrows both.
  Exchanges(std::span<const double> costs, std::vector<Share>& shares) : costs_(costs), shares_(shares) {
    for (std::size_t part = 0; part < shares.size(); ++part) {
      mean_ += shares[part].load / static_cast<double>(shares.size());
      by_load_.emplace(shares[part].load, part);
    }
  }

  void run() {
    const std::size_t most_exchanges = 4 * shares_.size() + 64;
    for (std::size_t i = 0; i < most_exchanges; ++i) {
      // Of equal loads that of the first part.
      const std::size_t dearest = by_load_.lower_bound({by_load_.rbegin()->first, 0})->second;
      if (is_good(shares_[dearest].load)) return;
      const std::optional<Exchange> best = best_exchange(dearest);
      if (!best) return;
      do_exchange(dearest, *best);
    }
  }

 private:
  /// Of the dearest part's item at `from` for another part's at `to`.
  struct Exchange {
    std::size_t part = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    double peak = 0;  ///< the larger load of both afterwards
  };

  bool is_good(double load) const { return load <= mean_ * (1 + kGoodEnough); }

  /// With the part that has the least first, since it gains the most.
  std::optional<Exchange> best_exchange(std::size_t dearest) const {
    std::optional<Exchange> best;
    for (const auto& [load, other] : by_load_) {
      // No exchange leaves both parts below half of what they have together.
      if (best && (shares_[dearest].load + load) / 2 >= best->peak) break;
      if (other == dearest) continue;
      look_for_better(dearest, other, best);
      if (best && is_good(best->peak)) break;
    }
    return best;
  }

  /// Both lists are sorted, so one pass finds for each item the partner that is nearest to what is wanted.
  void look_for_better(std::size_t dearest, std::size_t other, std::optional<Exchange>& best) const {
    const Share& high = shares_[dearest];
    const Share& low = shares_[other];
    const double wanted = (high.load - low.load) / 2;
    std::size_t next = 0;  // the first partner that is dear enough to leave no more than what is wanted
    for (std::size_t from = 0; from < high.items.size(); ++from) {
      const double cost = costs_[high.items[from]];
      while (next < low.items.size() && cost - costs_[low.items[next]] > wanted) ++next;
      for (std::size_t to = next == 0 ? 0 : next - 1; to < std::min(next + 1, low.items.size()); ++to) {
        const double moved = cost - costs_[low.items[to]];
        const double peak = std::max(high.load - moved, low.load + moved);
        // Rounding must not make it go round in circles.
        if (peak < (best ? best->peak : high.load) - 1e-12 * mean_)
          best = Exchange{.part = other, .from = from, .to = to, .peak = peak};
      }
    }
  }

  void do_exchange(std::size_t dearest, const Exchange& exchange) {
    Share& high = shares_[dearest];
    Share& low = shares_[exchange.part];
    by_load_.erase({high.load, dearest});
    by_load_.erase({low.load, exchange.part});
    const double moved = costs_[high.items[exchange.from]] - costs_[low.items[exchange.to]];
    std::swap(high.items[exchange.from], low.items[exchange.to]);
    high.load -= moved;
    low.load += moved;
    by_load_.emplace(high.load, dearest);
    by_load_.emplace(low.load, exchange.part);
    for (Share* share : {&high, &low}) {
      std::ranges::sort(share->items, [&](std::size_t a, std::size_t b) {
        return std::pair(costs_[a], b) < std::pair(costs_[b], a);
      });
    }
  }

  std::span<const double> costs_;
  std::vector<Share>& shares_;
  std::set<std::pair<double, std::size_t>> by_load_;  ///< all parts, each with its load before it
  double mean_ = 0;
};

}  // namespace

std::vector<std::vector<std::size_t>> divide_evenly(std::span<const double> costs, std::size_t num_parts) {
  base::check(num_parts >= 1, "there must be a part: parts={}", num_parts);
  std::vector<Share> shares = longest_first(costs, num_parts);
  Exchanges(costs, shares).run();
  std::vector<std::vector<std::size_t>> items_of;
  for (Share& share : shares) {
    std::sort(share.items.begin(), share.items.end());
    items_of.push_back(std::move(share.items));
  }
  return items_of;
}

}  // namespace plenum::data
