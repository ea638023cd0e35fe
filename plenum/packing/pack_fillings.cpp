#include "plenum/packing/pack_fillings.h"

#include <algorithm>
#include <utility>

namespace plenum::packing {

namespace {

constexpr std::size_t kMostFillings = 5'000;
constexpr std::int64_t kMostSteps = 200'000;

std::vector<std::int64_t> values_of(const PackingProblem& problem,
                                    const std::vector<std::uint64_t>& weights) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(problem.capacity) + 1);
  for (std::size_t length = 1; length < problem.histogram.counts.size(); ++length) {
    if (problem.histogram.counts[length] > 0) values[length] = static_cast<std::int64_t>(weights[length]);
  }
  return values;
}

}  // namespace

PackFillings::PackFillings(const PackingProblem& problem, const DualWeights& weights)
    : capacity_(problem.capacity),
      depth_(problem.depth),
      weights_(weights.weight_of_length),
      heaviest_(values_of(problem, weights_), problem.depth) {}

PackFillings::Found PackFillings::find(const std::vector<std::uint64_t>& counts, std::uint64_t least_weight) {
  available_.clear();
  for (std::size_t length = counts.size() - 1; length > 0; --length) {
    if (counts[length] > 0) available_.emplace_back(static_cast<std::int32_t>(length), counts[length]);
  }
  least_weight_ = least_weight;
  found_ = {};
  num_steps_ = 0;
  const std::int32_t longest = available_.front().first;
  --available_.front().second;
  chosen_.assign(1, longest);
  fill(0, capacity_ - longest, depth_ - 1, weights_[static_cast<std::size_t>(longest)], capacity_ + 1);
  std::stable_sort(found_.fillings.begin(), found_.fillings.end(),
                   [](const Filling& a, const Filling& b) { return a.weight > b.weight; });
  return std::move(found_);
}

/// Tries lengths from the `from`-th on. `shortest_left_out` could still be taken if there is space in the
/// end.
void PackFillings::fill(std::size_t from, std::int64_t tokens, std::int64_t depth, std::uint64_t weight,
                        std::int64_t shortest_left_out) {
  if (!found_.all || weight + static_cast<std::uint64_t>(heaviest_.best(tokens)) < least_weight_) return;
  if (++num_steps_ > kMostSteps || found_.fillings.size() >= kMostFillings) {
    found_.all = false;
    return;
  }
  const auto begin = available_.begin() + static_cast<std::ptrdiff_t>(from);
  const auto next =
      std::lower_bound(begin, available_.end(), depth == 0 ? 0 : tokens,
                       [](const auto& entry, std::int64_t limit) { return entry.first > limit; });
  if (next == available_.end()) {
    if (weight >= least_weight_ && (depth == 0 || tokens < shortest_left_out)) {
      found_.fillings.push_back({chosen_, weight});
    }
    return;
  }
  const auto [length, count] = *next;
  const auto following = static_cast<std::size_t>(next - available_.begin()) + 1;
  const auto most = static_cast<std::int64_t>(
      std::min(count, static_cast<std::uint64_t>(std::min(tokens / length, depth))));
  const std::uint64_t each = weights_[static_cast<std::size_t>(length)];
  const std::size_t before = chosen_.size();
  for (std::int64_t copies = most; copies >= 0; --copies) {
    chosen_.resize(before);
    chosen_.insert(chosen_.end(), static_cast<std::size_t>(copies), length);
    const bool some_left = static_cast<std::uint64_t>(copies) < count;
    fill(following, tokens - copies * length, depth - copies,
         weight + static_cast<std::uint64_t>(copies) * each, some_left ? length : shortest_left_out);
  }
  chosen_.resize(before);
}

}  // namespace plenum::packing
