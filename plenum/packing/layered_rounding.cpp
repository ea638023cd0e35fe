#include "plenum/packing/layered_rounding.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "plenum/packing/pack_builder.h"
#include "plenum/packing/rounding.h"
#include "plenum/packing/similar_packs.h"

namespace plenum::packing {

namespace {

/// What a pack may be worth less than 1. A layer that makes too few packs makes the next one less strict.
constexpr double kFirstLoss = 1e-6;
constexpr double kGreatestLoss = 1e-3;
constexpr double kLossGrowth = 10;
/// The share of the packs that a layer should make.
constexpr double kEnough = 0.2;
/// The bound of a layer need not be closer than this share.
constexpr double kTolerance = 1e-4;

/// Packs made so far and the relaxation of what remains.
struct Layer {
  PackBuilder builder;
  Relaxation relaxation;

  double promised_packs() const { return static_cast<double>(builder.num_packs()) + relaxation.objective; }
};

std::int64_t num_lengths_left(const PackBuilder& builder) {
  const std::vector<std::uint64_t>& counts = builder.remaining();
  return static_cast<std::int64_t>(counts.size()) - std::count(counts.begin(), counts.end(), 0);
}

PackingProblem rest_of(const PackingProblem& problem, const PackBuilder& builder) {
  return {.histogram = {builder.remaining()}, .capacity = problem.capacity, .depth = problem.depth};
}

std::vector<std::vector<std::int32_t>> patterns_of(const Relaxation& relaxation) {
  std::vector<std::vector<std::int32_t>> patterns;
  for (const FractionalPattern& pattern : relaxation.patterns) patterns.push_back(pattern.lengths);
  return patterns;
}

/// Solves the relaxation of what remains with a price for every length, rounds it, and returns all packs.
PackingPlan finish(const PackingProblem& problem, Layer layer, const Deadline& deadline) {
  if (layer.builder.num_remaining() == 0 || deadline.passed()) {
    layer.builder.make_rest();
    return layer.builder.plan();
  }
  const PackingProblem rest = rest_of(problem, layer.builder);
  Relaxation relaxation =
      relax(rest, patterns_of(layer.relaxation), {.duals = std::move(layer.relaxation.duals)}, deadline);
  const auto good_enough = static_cast<std::uint64_t>(std::ceil(relaxation.bound));
  PackingPlan plan = layer.builder.plan();
  const PackingPlan last =
      round_relaxation(rest, std::move(relaxation), {.good_enough_packs = good_enough}, deadline);
  plan.patterns.insert(plan.patterns.end(), last.patterns.begin(), last.patterns.end());
  return plan;
}

}  // namespace

PackingPlan round_in_layers(const PackingProblem& problem, Relaxation relaxation, const LayerOptions& options,
                            const Deadline& layers_deadline, const Deadline& deadline) {
  Layer layer{.builder = PackBuilder(problem), .relaxation = std::move(relaxation)};
  CoarseOptions coarse = options.coarse;
  double max_loss = kFirstLoss;
  while (num_lengths_left(layer.builder) > options.few_lengths && max_loss <= kGreatestLoss &&
         !layers_deadline.passed()) {
    coarse.tolerance = std::max(options.coarse.tolerance, kTolerance * layer.relaxation.objective);
    const PackingProblem before = rest_of(problem, layer.builder);
    const std::vector<std::vector<std::int32_t>> known = patterns_of(layer.relaxation);
    std::optional<Layer> best;
    for (const double share : options.shares) {
      Layer next{.builder = layer.builder, .relaxation = {}};
      make_similar_packs(before, layer.relaxation, {.share = share, .max_loss = max_loss}, next.builder);
      if (next.builder.num_remaining() == 0) return next.builder.plan();
      next.relaxation = relax_coarsely(rest_of(problem, next.builder), known, coarse, layers_deadline);
      if (!best || next.promised_packs() < best->promised_packs()) best = std::move(next);
      if (layers_deadline.passed()) break;
    }
    const auto num_made = static_cast<double>(best->builder.num_packs() - layer.builder.num_packs());
    if (num_made < kEnough * layer.relaxation.objective) max_loss *= kLossGrowth;
    layer = std::move(*best);
  }
  return finish(problem, std::move(layer), deadline);
}

}  // namespace plenum::packing
