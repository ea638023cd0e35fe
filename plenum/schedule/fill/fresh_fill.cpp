#include "plenum/schedule/fill/fresh_fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "plenum/base/check.h"
#include "plenum/schedule/core/curvature_coverage.h"
#include "plenum/schedule/fill/filled_cycle.h"
#include "plenum/schedule/fill/fresh_statistics.h"
#include "plenum/schedule/fill/kept_memory.h"
#include "plenum/schedule/simulate/simulate.h"

namespace plenum::schedule {
namespace {

/// Cycles longer than this are tried only where they are asked for.
constexpr std::size_t kMostSteps = 128;
constexpr double kMebibytes = 1024.0 * 1024.0;

/// The shares of rows that the maps' A or B cover.
Coverage coverage_of(const Schedule& schedule, ActionType side) {
  const Problem& problem = schedule.problem;
  const CurvatureCoverage coverage(schedule);
  const auto size_of = [&](MicroBatchId m) {
    return problem.micro_batch_sizes.empty() ? 1.0 : problem.micro_batch_sizes[m.index()];
  };
  double total = 0;
  for (std::size_t m = 0; m < problem.num_micro_batches; ++m) total += size_of(MicroBatchId::at(m));
  Coverage shares{.least = 1, .mean = 0};
  const std::size_t num_layers = StageLayers(problem).total();
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    for (std::size_t map = 0; map < problem.num_factors; ++map) {
      double covered = 0;
      for (const MicroBatchId m : coverage.of(side, LayerId::at(layer), map)) covered += size_of(m);
      shares.least = std::min(shares.least, covered / total);
      shares.mean += covered / total / static_cast<double>(num_layers * problem.num_factors);
    }
  }
  return shares;
}

class FreshFilling {
 public:
  FreshFilling(const Schedule& base, const Filler& filler, const CostModel& costs, const FillOptions& options)
      : costs_(costs),
        options_(options),
        step_(base, filler, costs, IdleTime::BehindWork),
        refresh_(step_, filler, costs),
        statistics_(step_, refresh_) {}

  FillResult run() {
    const std::size_t most_steps =
        std::min(options_.max_cycle_steps.value_or(kMostSteps), options_.max_staleness + 1);
    for (std::size_t num_steps = 1; num_steps <= most_steps; ++num_steps) {
      if (std::optional<FillResult> result = with_most_coverage(num_steps)) return std::move(*result);
    }
    fail(most_steps);
  }

 private:
  using Most = std::vector<MostCovered>;  // by stage

  Most everywhere(std::size_t count) const {
    return Most(step_.schedule().num_stages(), {.a = count, .b = count});
  }

  /// With the parts of layers that let a cycle of so many steps cover most.
  std::optional<FillResult> with_most_coverage(std::size_t num_steps) {
    std::optional<FillResult> best;
    for (std::size_t count = 1; count <= std::min(num_steps, most_layers_of_stage()); ++count) {
      std::optional<FillResult> found =
          with_most_coverage(LayerParts{.count = count, .cycle_steps = num_steps});
      if (found && (!best || is_better(*found, *best))) best = std::move(found);
    }
    return best;
  }

  /// By coverage; with the same, by the length of the steps and then by the age of inverses.
  static bool is_better(const FillResult& a, const FillResult& b) {
    const std::array<double, 5> gains = {
        a.coverage_b.least - b.coverage_b.least, a.coverage_b.mean - b.coverage_b.mean,
        a.coverage_a.mean - b.coverage_a.mean, 1 - a.filled_step_seconds / b.filled_step_seconds,
        b.mean_age - a.mean_age};
    constexpr double kAlike = 1e-9;
    for (const double gain : gains) {
      if (std::abs(gain) > kAlike) return gain > 0;
    }
    return false;
  }

  /// More of all stages alike, then of one after the other, first of both A and B and then of A, as long as
  /// inverses do not get older for it.
  std::optional<FillResult> with_most_coverage(const LayerParts& parts) {
    std::optional<FillResult> best = attempt(parts, everywhere(1));
    if (!best) return best;
    Most most = everywhere(
        largest(1, [&](std::size_t count) { return improve(best, attempt(parts, everywhere(count))); }));
    const auto raise = [&](MostCovered& of_stage, bool is_of_both) {
      const MostCovered before = of_stage;
      const auto set = [&](std::size_t count) {
        of_stage = {.a = count, .b = is_of_both ? count : before.b};
      };
      set(largest(before.a, [&](std::size_t count) {
        set(count);
        std::optional<FillResult> found = attempt(parts, most);
        const bool is_older = found && found->mean_age > best->mean_age + SteadyStep::kRounding;
        return (is_of_both || !is_older) && improve(best, std::move(found));
      }));
    };
    for (MostCovered& of_stage : most) raise(of_stage, true);
    for (MostCovered& of_stage : most) raise(of_stage, false);
    return best;
  }

  std::size_t most_layers_of_stage() const {
    return *std::ranges::max_element(step_.schedule().problem.stage_layers);
  }

  /// The largest number of micro-batches for which `works`, which is known of `least`, by bisection.
  std::size_t largest(std::size_t least, const std::function<bool(std::size_t)>& works) const {
    std::size_t too_many = statistics_.num_micro_batches() + 1;
    while (too_many - least > 1) {
      const std::size_t middle = std::midpoint(least, too_many);
      (works(middle) ? least : too_many) = middle;
    }
    return least;
  }

  static bool improve(std::optional<FillResult>& best, std::optional<FillResult> found) {
    if (!found) return false;
    best = std::move(found);
    return true;
  }

  std::optional<FillResult> attempt(const LayerParts& parts, const Most& most) {
    const FreshStatistics statistics = statistics_.place(most, parts);
    const Refresh refresh = refresh_.without(statistics.is_dropped, statistics.steps);
    const CycleShape shape{.num_steps = parts.cycle_steps, .num_refreshes = 1};
    const std::optional<Placement> placement = place(step_, refresh, costs_,
                                                     {.shape = shape,
                                                      .max_age = options_.max_staleness,
                                                      .drains = options_.drains,
                                                      .fixed = statistics.placed});
    if (!placement) return std::nullopt;
    FillResult result;
    result.peak_kept_bytes = peak_kept_bytes(step_, refresh, *placement, shape);
    const double kept_bytes = *std::ranges::max_element(result.peak_kept_bytes);
    least_kept_bytes_ = std::min(least_kept_bytes_, kept_bytes);
    if (kept_bytes > options_.max_kept_bytes) return std::nullopt;
    Freshness freshness;
    std::optional<Schedule> schedule =
        filled_cycle(step_, refresh, *placement, shape, options_.max_staleness, freshness);
    if (!schedule) return std::nullopt;
    schedule->problem.has_partial_curvature = refresh.items().size() < refresh_.items().size();
    const Simulation simulation = simulate(*schedule, costs_);
    least_step_seconds_ = std::min(least_step_seconds_, simulation.step_seconds);
    if (simulation.step_seconds > step_.seconds() * (1 + options_.margin + SteadyStep::kRounding)) {
      return std::nullopt;
    }
    result.schedule = std::move(*schedule);
    result.refresh_steps = static_cast<double>(parts.cycle_steps);
    // Work that is beyond the idle time needs none.
    result.refresh_bound = std::min(least_refresh_steps(step_, refresh), result.refresh_steps);
    result.base_step_seconds = step_.seconds();
    result.filled_step_seconds = simulation.step_seconds;
    result.utilization = simulation.utilization;
    result.mean_age = freshness.mean_age;
    result.max_age = freshness.max_age;
    result.coverage_a = coverage_of(result.schedule, ActionType::CurvatureA);
    result.coverage_b = coverage_of(result.schedule, ActionType::CurvatureB);
    return result;
  }

  [[noreturn]] void fail(std::size_t most_steps) const {
    if (std::isfinite(least_step_seconds_)) {
      base::fail("filling makes a step at least {:.3f} % longer; the margin is {:.3f} %",
                 100 * (least_step_seconds_ / step_.seconds() - 1), 100 * options_.margin);
    }
    if (std::isfinite(least_kept_bytes_)) {
      base::fail("the work keeps at least {:.1f} MiB alive on a rank; the limit is {:.1f} MiB",
                 least_kept_bytes_ / kMebibytes, options_.max_kept_bytes / kMebibytes);
    }
    base::fail(
        "no cycle of up to {} steps has room for the work; inversions and curvature of one micro-batch "
        "need {:.1f} steps of idle time",
        most_steps, least_refresh_steps(step_, least_work()));
  }

  Refresh least_work() const {
    const FreshStatistics least = statistics_.place(everywhere(1), {});
    return refresh_.without(least.is_dropped, least.steps);
  }

  const CostModel& costs_;
  FillOptions options_;
  SteadyStep step_;
  Refresh refresh_;
  FreshStatisticsPlacer statistics_;
  /// How near attempts came to the limits, as far as they got.
  double least_kept_bytes_ = std::numeric_limits<double>::infinity();
  double least_step_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace

FillResult fill_fresh(const Schedule& base, const Filler& filler, const CostModel& costs,
                      const FillOptions& options) {
  return FreshFilling(base, filler, costs, options).run();
}

}  // namespace plenum::schedule
