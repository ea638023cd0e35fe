#include "plenum/packing/fullest_fit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "plenum/packing/length_runs.h"

namespace plenum::packing {

namespace {

/// Sums of sequences at hand, found length by length. A sum stays as it was first found, so the way back from
/// it uses no length more often than there are sequences of it.
class ReachableSums {
 public:
  ReachableSums(std::int64_t tokens, std::int64_t depth)
      : tokens_(tokens),
        depth_(depth),
        last_(static_cast<std::size_t>(tokens) + 1),
        number_(last_.size()),
        copies_(last_.size()) {}

  /// Adds up to `available` sequences of `length` to every sum. True once a sum takes all tokens.
  bool extend(std::int32_t length, std::uint64_t available) {
    const auto end = std::min<std::int64_t>(
        tokens_, greatest_ + length * static_cast<std::int64_t>(std::min<std::uint64_t>(
                                          available, static_cast<std::uint64_t>(tokens_ / length))));
    std::fill_n(copies_.begin(), end + 1, 0);
    for (std::int64_t sum = length; sum <= end; ++sum) {
      const auto to = static_cast<std::size_t>(sum);
      const auto from = static_cast<std::size_t>(sum - length);
      if (last_[to] != 0 || (from != 0 && last_[from] == 0)) continue;
      if (copies_[from] >= available || number_[from] >= depth_) continue;
      last_[to] = length;
      number_[to] = number_[from] + 1;
      copies_[to] = copies_[from] + 1;
      greatest_ = std::max(greatest_, sum);
    }
    return greatest_ == tokens_;
  }

  /// Appends the sequences of the greatest sum.
  void append_greatest(std::vector<std::int32_t>& lengths) const {
    for (auto sum = static_cast<std::size_t>(greatest_); sum > 0;
         sum -= static_cast<std::size_t>(last_[sum])) {
      lengths.push_back(last_[sum]);
    }
  }

 private:
  std::int64_t tokens_;
  std::int64_t depth_;
  std::int64_t greatest_ = 0;
  std::vector<std::int32_t> last_;     ///< by sum: the length that was added last; 0 if it is not reached
  std::vector<std::int64_t> number_;   ///< by sum: how many sequences it has
  std::vector<std::uint64_t> copies_;  ///< by sum: how many of them have the length being added
};

}  // namespace

void append_fullest_fit(std::vector<std::uint64_t> remaining, std::span<const std::int32_t> preference,
                        PackingPlan& plan) {
  for (std::size_t longest = remaining.size() - 1; longest > 0;) {
    if (remaining[longest] == 0) {
      --longest;
      continue;
    }
    --remaining[longest];
    std::vector<std::int32_t> pattern{static_cast<std::int32_t>(longest)};
    ReachableSums sums(plan.capacity - static_cast<std::int64_t>(longest), plan.depth - 1);
    for (const std::int32_t length : preference) {
      const std::uint64_t available = remaining[static_cast<std::size_t>(length)];
      if (available > 0 && sums.extend(length, available)) break;
    }
    sums.append_greatest(pattern);
    std::sort(pattern.begin(), pattern.end(), std::greater<>());
    ++remaining[longest];
    std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
    for_each_run(pattern, [&](std::size_t length, std::uint64_t copies) {
      count = std::min(count, remaining[length] / copies);
    });
    for_each_run(pattern,
                 [&](std::size_t length, std::uint64_t copies) { remaining[length] -= count * copies; });
    plan.patterns.push_back({std::move(pattern), count});
  }
}

}  // namespace plenum::packing
