#include "plenum/schedule/fill/ready_pool.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

/// Lengths that differ by less are one.
constexpr double kSameLength = 1e-9;
/// How many of a length fewer than fit are tried, and how long.
constexpr std::size_t kNumFewer = 2;
constexpr std::size_t kMostNodes = 200;
/// As long as so many of the longest items fit behind it, an item does not decide how a gap ends.
constexpr double kFarFromEnd = 3;

bool runs_later(const ReadyItem& a, const ReadyItem& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.piece > b.piece;
}

class WasteSearch {
 public:
  WasteSearch(const std::vector<ReadyPool::Length>& lengths, double enough, std::size_t without)
      : lengths_(lengths), enough_(enough), without_(without) {}

  double run(double seconds) {
    least_ = seconds;
    visit(0, seconds);
    return least_;
  }

 private:
  void visit(std::size_t first, double rest) {
    least_ = std::min(least_, std::max(rest, 0.0));
    while (first < lengths_.size() && (lengths_[first].seconds > rest || count(first) == 0)) ++first;
    if (first == lengths_.size() || is_over()) return;
    ++num_nodes_;
    const double length = lengths_[first].seconds;
    const std::size_t most =
        length > 0 ? std::min(count(first), static_cast<std::size_t>(rest / length)) : count(first);
    const std::size_t fewest = most > kNumFewer ? most - kNumFewer : 0;
    for (std::size_t n = most + 1; n > fewest && !is_over(); --n) {
      visit(first + 1, rest - static_cast<double>(n - 1) * length);
    }
  }

  std::size_t count(std::size_t length) const {
    return lengths_[length].items.size() - (length == without_ ? 1 : 0);
  }
  bool is_over() const { return least_ <= enough_ || num_nodes_ >= kMostNodes; }

  const std::vector<ReadyPool::Length>& lengths_;
  double enough_;
  std::size_t without_;
  double least_ = 0;
  std::size_t num_nodes_ = 0;
};

}  // namespace

void ReadyPool::add(double seconds, const ReadyItem& item) {
  auto place = std::find_if(lengths_.begin(), lengths_.end(), [seconds](const Length& length) {
    return length.seconds <= seconds * (1 + kSameLength);
  });
  if (place == lengths_.end() || place->seconds < seconds * (1 - kSameLength)) {
    place = lengths_.insert(place, {.seconds = seconds, .items = {}});
  }
  total_seconds_ += seconds;
  place->items.push_back(item);
  std::push_heap(place->items.begin(), place->items.end(), runs_later);
}

ReadyItem ReadyPool::take(std::size_t length) {
  std::vector<ReadyItem>& items = lengths_[length].items;
  std::pop_heap(items.begin(), items.end(), runs_later);
  const ReadyItem item = items.back();
  items.pop_back();
  total_seconds_ -= lengths_[length].seconds;
  if (items.empty()) lengths_.erase(lengths_.begin() + static_cast<std::ptrdiff_t>(length));
  return item;
}

std::optional<ReadyPool::Choice> ReadyPool::choose(double seconds, double enough) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (lengths_[i].seconds <= seconds) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return runs_later(lengths_[b].items.front(), lengths_[a].items.front());
  });
  if (order.empty()) return std::nullopt;
  const double rest = seconds - lengths_[order.front()].seconds;
  if (rest >= kFarFromEnd * lengths_.front().seconds && seconds <= total_seconds_) {
    return Choice{.length = order.front(), .waste = 0};
  }
  std::optional<Choice> best;
  for (const std::size_t i : order) {
    const double waste = least_waste(seconds - lengths_[i].seconds, enough, i);
    if (!best || waste < best->waste) best = Choice{.length = i, .waste = waste};
    if (waste <= enough) break;
  }
  return best;
}

double ReadyPool::least_waste(double seconds, double enough, std::size_t without) const {
  return WasteSearch(lengths_, enough, without).run(seconds);
}

}  // namespace plenum::schedule
