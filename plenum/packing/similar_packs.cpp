#include "plenum/packing/similar_packs.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "plenum/packing/length_runs.h"

namespace plenum::packing {

namespace {

/// A slot takes lengths at most this share of the capacity away from its own, but at least a few.
constexpr std::int64_t kReachDivisor = 32;
constexpr std::int64_t kLeastReach = 8;

/// Finds packs that are like a pattern among the sequences that remain.
class SimilarPack {
 public:
  SimilarPack(const PackingProblem& problem, const std::vector<double>& duals, const PackBuilder& builder)
      : capacity_(problem.capacity),
        reach_(std::max(problem.capacity / kReachDivisor, kLeastReach)),
        duals_(duals),
        remaining_(builder.remaining()),
        taken_(remaining_.size()) {}

  /// Finds the most valuable pack like `slots` (descending) of those that let one slot or another adjust.
  void find(std::span<const std::int32_t> slots) {
    value_ = 0;
    for (std::size_t adjusting = 0; adjusting < slots.size(); ++adjusting) {
      if (adjusting > 0 && slots[adjusting] == slots[adjusting - 1]) continue;
      for (const bool shorter_first : {true, false}) {
        std::vector<std::int32_t> pack = fill(slots, adjusting, shorter_first);
        double value = 0;
        for (const std::int32_t length : pack) {
          value += duals_[static_cast<std::size_t>(length)];
          taken_[static_cast<std::size_t>(length)] = 0;
        }
        if (value <= value_) continue;
        value_ = value;
        lengths_ = std::move(pack);
      }
    }
    std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
  }

  const std::vector<std::int32_t>& lengths() const { return lengths_; }  ///< descending
  double value() const { return value_; }

 private:
  /// Fills all slots but one with what is nearest, above after what was below and the other way round, then
  /// that one with the longest that fits.
  std::vector<std::int32_t> fill(std::span<const std::int32_t> slots, std::size_t adjusting,
                                 bool shorter_first) {
    std::vector<std::int32_t> pack;
    std::int64_t tokens = capacity_;
    std::int64_t excess = shorter_first ? 1 : -1;  // of the lengths taken over their slots
    const auto take = [&](std::int64_t length) {
      ++taken_[static_cast<std::size_t>(length)];
      tokens -= length;
      pack.push_back(static_cast<std::int32_t>(length));
    };
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (i == adjusting) continue;
      const std::int64_t length = nearest(slots[i], excess > 0 ? -1 : 1);
      if (length == 0 || length > tokens) continue;
      excess += length - slots[i];
      take(length);
    }
    std::int64_t longest = std::min(tokens, static_cast<std::int64_t>(remaining_.size()) - 1);
    while (longest > 0 && !is_available(longest)) --longest;
    if (longest > 0) take(longest);
    return pack;
  }

  /// The length closest to `slot` on one side, or else on the other; 0 if there is none within reach.
  std::int64_t nearest(std::int64_t slot, int side) const {
    for (const int direction : {side, -side}) {
      for (std::int64_t away = 0; away <= reach_; ++away) {
        const std::int64_t length = slot + direction * away;
        if (length < 1 || length >= static_cast<std::int64_t>(remaining_.size())) break;
        if (is_available(length)) return length;
      }
    }
    return 0;
  }

  bool is_available(std::int64_t length) const {
    return remaining_[static_cast<std::size_t>(length)] > taken_[static_cast<std::size_t>(length)];
  }

  std::int64_t capacity_;
  std::int64_t reach_;
  const std::vector<double>& duals_;
  const std::vector<std::uint64_t>& remaining_;
  std::vector<std::uint64_t> taken_;  ///< by the pack in the making
  std::vector<std::int32_t> lengths_;
  double value_ = 0;
};

}  // namespace

void make_similar_packs(const PackingProblem& problem, const Relaxation& relaxation,
                        const SimilarPacksOptions& options, PackBuilder& builder) {
  SimilarPack similar(problem, relaxation.duals, builder);
  for (const FractionalPattern& pattern : relaxation.patterns) {
    auto left = static_cast<std::uint64_t>(pattern.activity * options.share);
    while (left > 0) {
      similar.find(pattern.lengths);
      if (similar.value() < 1 - options.max_loss) break;
      std::uint64_t times = left;
      for_each_run(similar.lengths(), [&](std::size_t length, std::uint64_t copies) {
        times = std::min(times, builder.remaining()[length] / copies);
      });
      builder.make(similar.lengths(), times);
      left -= times;
    }
  }
}

}  // namespace plenum::packing
