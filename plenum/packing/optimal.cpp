#include "plenum/packing/optimal.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "plenum/packing/branch_and_bound.h"
#include "plenum/packing/column_generation.h"
#include "plenum/packing/fullest_fit.h"
#include "plenum/packing/layered_rounding.h"
#include "plenum/packing/mixed_fit.h"
#include "plenum/packing/price_nodes.h"
#include "plenum/packing/repacking.h"
#include "plenum/packing/rounding.h"
#include "plenum/packing/streaming.h"

namespace plenum::packing {

namespace {

using Wide = unsigned __int128;

/// Greedy plans with up to this many short sequences set beside the longest.
constexpr std::int64_t kMaxShort = 8;
/// The shares of the time limit after which the relaxation is done, and its rounding, and then the layers.
struct Schedule {
  double relaxation;
  double rounding;
  double layers;
};
constexpr Schedule kFewLengths{.relaxation = 0.75, .rounding = 0.9, .layers = 0.9};
/// The exact relaxation gets long enough to see whether it converges.
constexpr Schedule kManyLengths{.relaxation = 0.4, .rounding = 0.5, .layers = 0.85};
/// Layers of different thickness make different plans, the first usually the best.
constexpr std::array<double, 2> kLayerShares[] = {{0.95, 0.7}, {0.85, 0.5}, {0.95, 0.95}, {0.8, 0.3}};
/// Beyond this, pricing once takes seconds and no relaxation would get far: greedy plans must do.
constexpr std::int64_t kMaxCapacity = std::int64_t{1} << 15;
/// Beyond this, the one with a price for every length would not.
constexpr std::int64_t kMaxCapacityTimesLengths = std::int64_t{1} << 28;
/// Up to this many looks at an open pack, streaming takes about a second.
constexpr std::uint64_t kFewSteps = std::uint64_t{1} << 30;
/// Up to this many packs, there is some hope to try every plan.
constexpr std::uint64_t kFewPacks = 1'000;
/// Of the first turn of the search; every further one has twice as many.
constexpr std::int64_t kFirstAttempts = 60;
constexpr std::int64_t kFirstNodes = 100;
constexpr std::int64_t kMostDoublings = 30;
/// Where at least so many sequences go into a pack, there is a choice of them that fills it, or nearly so.
constexpr std::int64_t kManyToAPack = 4;

/// Ways to make different plans of one relaxation, the quickest first; it is nearly always enough. The later
/// ones solve the relaxation of what remains to the end, not just to the lower bound.
std::vector<RoundingOptions> rounding_attempts(std::uint64_t lower_bound) {
  std::vector<RoundingOptions> attempts;
  for (const std::uint64_t good_enough : {lower_bound, std::uint64_t{0}}) {
    for (const double threshold : {0.6, 0.8, 0.5, 0.99}) {
      attempts.push_back({.threshold = threshold, .good_enough_packs = good_enough});
    }
  }
  return attempts;
}

class OptimalPacking {
 public:
  OptimalPacking(const PackingProblem& problem, const OptimalOptions& options)
      : problem_(problem),
        options_(options),
        num_lengths_(static_cast<std::int64_t>(lengths_that_occur(problem.histogram).size())),
        many_lengths_(num_lengths_ > options.few_lengths),
        deadlines_(options.time_limit_seconds, many_lengths_ ? kManyLengths : kFewLengths),
        result_{.plan = {}, .bound = combinatorial_bound(problem)} {
    for (std::int64_t length = 0; length <= problem.capacity; ++length) {
      duals_.push_back(static_cast<double>(length) / static_cast<double>(problem.capacity));
    }
  }

  OptimalResult run() {
    pack_greedily();
    if (problem_.capacity <= kMaxCapacity) {
      relax_and_round();
      round_layers();
    }
    if (problem_.capacity <= kMaxCapacity) search();
    check_plan(result_.plan, problem_);
    return std::move(result_);
  }

 private:
  struct Deadlines {
    Deadlines(double seconds, const Schedule& schedule)
        : all(seconds),
          relaxation(seconds * schedule.relaxation),
          rounding(seconds * schedule.rounding),
          layers(seconds * schedule.layers) {}
    Deadline all;
    Deadline relaxation;
    Deadline rounding;
    Deadline layers;
  };

  bool proven() const { return result_.plan.num_packs() == result_.bound.packs; }

  void keep_better(PackingPlan plan) {
    if (result_.plan.patterns.empty() || plan.num_packs() < result_.plan.num_packs()) {
      result_.plan = std::move(plan);
    }
  }

  void raise_bound(const Relaxation& relaxation) {
    const LowerBound bound = dual_bound(problem_, weights_of_duals(relaxation.duals, problem_.capacity));
    if (bound.packs > result_.bound.packs) result_.bound = bound;
  }

  void pack_greedily() {
    const std::int64_t max_short = std::clamp<std::int64_t>(problem_.depth - 2, 0, kMaxShort);
    for (std::int64_t num_short = 0; num_short <= max_short; ++num_short) {
      PackingPlan plan{.capacity = problem_.capacity, .depth = problem_.depth, .patterns = {}};
      append_mixed_fit(problem_.histogram.counts, num_short, plan);
      for (const PackPattern& pattern : plan.patterns) known_.push_back(pattern.lengths);
      keep_better(std::move(plan));
      if (proven() || deadlines_.all.passed()) return;
    }
    if (problem_.histogram.longest() > problem_.capacity / kManyToAPack || problem_.capacity > kMaxCapacity)
      return;
    PackingPlan plan{.capacity = problem_.capacity, .depth = problem_.depth, .patterns = {}};
    std::vector<std::int32_t> lengths = lengths_that_occur(problem_.histogram);
    std::reverse(lengths.begin(), lengths.end());
    append_fullest_fit(problem_.histogram.counts, lengths, plan);
    keep_better(std::move(plan));
  }

  /// The linear relaxation, with few prices first where there are many lengths, and plans made of it.
  void relax_and_round() {
    if (proven()) return;
    if (many_lengths_) {
      coarse_ = relax_coarsely(problem_, {}, options_.coarse, deadlines_.relaxation);
      raise_bound(coarse_);
      duals_ = coarse_.duals;
    }
    if (problem_.capacity * num_lengths_ > kMaxCapacityTimesLengths) return;
    const RelaxationOptions fine{.good_enough = static_cast<double>(result_.bound.packs),
                                 .duals = coarse_.duals};
    for (const FractionalPattern& pattern : coarse_.patterns) known_.push_back(pattern.lengths);
    const Relaxation relaxation = relax(problem_, known_, fine, deadlines_.relaxation);
    raise_bound(relaxation);
    duals_ = relaxation.duals;
    for (const RoundingOptions& attempt : rounding_attempts(result_.bound.packs)) {
      if (proven() || deadlines_.rounding.passed()) return;
      keep_better(round_relaxation(problem_, relaxation, attempt, deadlines_.rounding));
      // Where full packs are all that is needed and an attempt repacks but a small part of them, that is
      // quicker than further roundings.
      const bool parts_are_small = result_.bound.packs > kFewPacks;
      const bool fullness_is_all = result_.bound.packs == volume_bound(problem_).packs;
      if (!repacking_ && parts_are_small && fullness_is_all) repack(kFirstAttempts);
    }
  }

  void round_layers() {
    for (const std::array<double, 2>& shares : kLayerShares) {
      if (!many_lengths_ || proven() || deadlines_.layers.passed()) break;
      const LayerOptions layers{
          .coarse = options_.coarse, .shares = shares, .few_lengths = options_.few_lengths};
      keep_better(round_in_layers(problem_, coarse_, layers, deadlines_.layers, deadlines_.all));
    }
  }

  /// What streaming finds, where that takes about a second; it is best where the volume is the bound.
  void take_streaming() {
    const auto num_steps =
        static_cast<Wide>(problem_.histogram.num_sequences()) * static_cast<Wide>(problem_.capacity);
    if (!proven() && num_steps <= kFewSteps && !deadlines_.all.passed())
      keep_better(pack_streaming(problem_, {}));
  }

  /// Begins with the best plan so far, and goes on with what has become of it.
  void repack(std::int64_t num_attempts) {
    if (!repacking_) repacking_.emplace(problem_, result_.plan, duals_);
    repacking_->run(result_.bound.packs, num_attempts, deadlines_.all);
    if (repacking_->num_packs() < result_.plan.num_packs()) result_.plan = repacking_->plan();
  }

  /// Repacks parts of the plan and, where packs are few, tries every plan; in turns that become longer, until
  /// the gap is closed or there is no time left.
  void search() {
    if (proven() || deadlines_.all.passed()) return;
    if (repacking_ && result_.plan.num_packs() < repacking_->num_packs()) repacking_.reset();
    const DualWeights weights = feasible_weights(problem_, weights_of_duals(duals_, problem_.capacity));
    for (std::int64_t turn = 0; turn < options_.search_turns; ++turn) {
      if (proven() || deadlines_.all.passed()) return;
      const std::int64_t doublings = std::min(turn, kMostDoublings);
      repack(kFirstAttempts << doublings);
      if (turn == 0) take_streaming();
      if (proven() || result_.bound.packs > kFewPacks) continue;
      SearchOutcome outcome =
          search_plan(problem_, result_.bound.packs, weights, kFirstNodes << doublings, deadlines_.all);
      if (outcome.plan) keep_better(*std::move(outcome.plan));
      if (outcome.refuted) result_.bound = {result_.bound.packs + 1, "search"};
    }
  }

  const PackingProblem& problem_;
  const OptimalOptions& options_;
  std::int64_t num_lengths_;
  bool many_lengths_;
  Deadlines deadlines_;
  OptimalResult result_;
  std::vector<std::vector<std::int32_t>> known_;  ///< patterns of plans found so far
  Relaxation coarse_;
  std::vector<double> duals_;  ///< by length: of the volume bound until a relaxation has better ones
  std::optional<Repacking> repacking_;
};

}  // namespace

OptimalResult pack_optimal(const PackingProblem& problem, const OptimalOptions& options) {
  check_problem(problem);
  return OptimalPacking(problem, options).run();
}

}  // namespace plenum::packing
