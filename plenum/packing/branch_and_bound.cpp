#include "plenum/packing/branch_and_bound.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "plenum/packing/column_generation.h"
#include "plenum/packing/pack_fillings.h"

namespace plenum::packing {

namespace {

using Wide = unsigned __int128;
using Lengths = std::vector<std::int32_t>;

/// As many are remembered.
constexpr std::size_t kMostDeadEnds = 100'000;

class BranchAndBound {
 public:
  BranchAndBound(const PackingProblem& problem, const DualWeights& weights, std::int64_t max_nodes,
                 const Deadline& deadline)
      : rest_(problem),
        num_rest_(problem.histogram.num_sequences()),
        weights_(weights),
        max_nodes_(max_nodes),
        deadline_(deadline),
        fillings_(problem, weights) {}

  SearchOutcome run(std::uint64_t num_packs) {
    // With few deviations from the relaxation first: a mistake among the first packs is not mended among the
    // last (limited discrepancy search: Harvey and Ginsberg, 1995).
    for (std::int64_t deviations = 0; !out_of_limits(); deviations = 2 * deviations + 1) {
      cut_short_ = false;
      if (can_pack(num_packs, {}, deviations)) return {.plan = plan(), .refuted = false};
      if (!cut_short_) return {.plan = {}, .refuted = !out_of_limits_ && knows_all_fillings_};
    }
    return {};
  }

 private:
  /// Once out of limits, always so: what was left out then must not pass for refuted.
  bool out_of_limits() {
    out_of_limits_ = out_of_limits_ || num_nodes_ > max_nodes_ || deadline_.passed();
    return out_of_limits_;
  }

  /// Whether what remains goes into `num_packs`; if so, made_ has all packs.
  bool can_pack(std::uint64_t num_packs, const std::vector<Lengths>& known, std::int64_t deviations) {
    if (num_rest_ == 0) return true;
    const Wide weight = weight_of_rest();
    const Wide limit = static_cast<Wide>(num_packs) * weights_.denominator;
    if (weight > limit) return false;
    Lengths key = rest_as_key();
    const auto dead_end = dead_ends_.find(key);
    if (dead_end != dead_ends_.end() && num_packs <= dead_end->second) return false;
    ++num_nodes_;
    if (out_of_limits()) return false;

    const RelaxationOptions options{.choice = PatternChoice::Possible,
                                    .good_enough = static_cast<double>(num_packs)};
    const Relaxation relaxation = relax(rest_, known, options, deadline_);
    const bool needs_more =
        relaxation.bound > static_cast<double>(num_packs) &&
        dual_bound(rest_, weights_of_duals(relaxation.duals, rest_.capacity)).packs > num_packs;
    const bool cut_short_before = std::exchange(cut_short_, false);
    if (!needs_more && can_fill(relaxation, num_packs, limit - weight, deviations)) return true;
    if (!cut_short_ && !out_of_limits_ && dead_ends_.size() < kMostDeadEnds) {
      dead_ends_[std::move(key)] = num_packs;
    }
    cut_short_ = cut_short_ || cut_short_before;
    return false;
  }

  /// Tries the fillings of the next pack that waste at most the `spare` weight, those first that the
  /// relaxation uses most. Each costs one deviation more than the one before.
  bool can_fill(const Relaxation& relaxation, std::uint64_t num_packs, Wide spare, std::int64_t deviations) {
    const std::uint64_t one = weights_.denominator;
    PackFillings::Found found =
        fillings_.find(rest_.histogram.counts, spare >= one ? 0 : one - static_cast<std::uint64_t>(spare));
    knows_all_fillings_ = knows_all_fillings_ && found.all;
    std::map<Lengths, double> activities;
    std::vector<Lengths> known;
    for (const FractionalPattern& pattern : relaxation.patterns) {
      activities[pattern.lengths] = pattern.activity;
      known.push_back(pattern.lengths);
    }
    const auto activity = [&](const PackFillings::Filling& filling) {
      const auto used = activities.find(filling.lengths);
      return used == activities.end() ? 0.0 : used->second;
    };
    std::stable_sort(found.fillings.begin(), found.fillings.end(),
                     [&](const auto& a, const auto& b) { return activity(a) > activity(b); });
    for (const PackFillings::Filling& filling : found.fillings) {
      if (deviations < 0) {
        cut_short_ = true;
        return false;
      }
      take(filling.lengths);
      if (can_pack(num_packs - 1, known, deviations--)) return true;
      put_back();
      if (out_of_limits()) return false;
    }
    return false;
  }

  void take(const Lengths& lengths) {
    for (const std::int32_t length : lengths) --rest_.histogram.counts[static_cast<std::size_t>(length)];
    num_rest_ -= lengths.size();
    made_.push_back(lengths);
  }

  void put_back() {
    for (const std::int32_t length : made_.back()) ++rest_.histogram.counts[static_cast<std::size_t>(length)];
    num_rest_ += made_.back().size();
    made_.pop_back();
  }

  Wide weight_of_rest() const {
    Wide weight = 0;
    for (std::size_t length = 1; length < rest_.histogram.counts.size(); ++length) {
      weight += static_cast<Wide>(weights_.weight_of_length[length]) * rest_.histogram.counts[length];
    }
    return weight;
  }

  /// Lengths that remain and their counts in turn.
  Lengths rest_as_key() const {
    Lengths key;
    for (std::size_t length = 1; length < rest_.histogram.counts.size(); ++length) {
      if (rest_.histogram.counts[length] == 0) continue;
      key.push_back(static_cast<std::int32_t>(length));
      key.push_back(static_cast<std::int32_t>(rest_.histogram.counts[length]));
    }
    return key;
  }

  PackingPlan plan() const {
    std::map<Lengths, std::uint64_t, std::greater<>> counts;
    for (const Lengths& pack : made_) ++counts[pack];
    PackingPlan plan{.capacity = rest_.capacity, .depth = rest_.depth, .patterns = {}};
    for (const auto& [lengths, count] : counts) plan.patterns.push_back({lengths, count});
    return plan;
  }

  PackingProblem rest_;
  std::uint64_t num_rest_;
  const DualWeights& weights_;
  std::int64_t max_nodes_;
  const Deadline& deadline_;
  PackFillings fillings_;
  std::vector<Lengths> made_;
  std::map<Lengths, std::uint64_t> dead_ends_;  ///< what cannot be packed, and into how many packs
  std::int64_t num_nodes_ = 0;
  bool out_of_limits_ = false;
  bool knows_all_fillings_ = true;
  bool cut_short_ = false;  ///< whether more deviations might have found a plan
};

}  // namespace

SearchOutcome search_plan(const PackingProblem& problem, std::uint64_t num_packs, const DualWeights& weights,
                          std::int64_t max_nodes, const Deadline& deadline) {
  return BranchAndBound(problem, weights, max_nodes, deadline).run(num_packs);
}

}  // namespace plenum::packing
