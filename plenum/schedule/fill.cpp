#include "plenum/schedule/fill.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "plenum/base/check.h"
#include "plenum/schedule/filled_cycle.h"
#include "plenum/schedule/simulate.h"

namespace plenum::schedule {
namespace {

/// How many steps a refresh's work waits at most before it begins: with more to choose from, gaps are filled
/// better; with less, inverses are fresher.
constexpr double kLags[] = {0, 0.5, 1, 1.5, 2, 3};

void require_options(const FillOptions& options) {
  base::require(options.margin >= 0, "the margin must not be negative: {}", options.margin);
  base::require(options.max_cycle_steps > 0, "a cycle has at least one step");
  base::require(options.max_kept_bytes >= 0, "the memory limit must not be negative: {}",
                options.max_kept_bytes);
}

double refresh_bound(const SteadyStep& step, const Refresh& refresh) {
  double bound = 1;
  for (std::size_t r = 0; r < step.schedule().ranks.size(); ++r) {
    const double work = refresh.compute_seconds(Rank::at(r));
    const double bubble = step.bubble_seconds(Rank::at(r));
    if (work == 0) continue;
    base::require(bubble > 0, "rank {} has no idle time to fill", r);
    bound = std::max(bound, work / bubble);
  }
  return bound;
}

/// Cycles of at most `max_steps` steps that leave room for their refreshes: frequent refreshes first, and of
/// those that differ by less than kAlike short cycles.
std::vector<CycleShape> candidates(double bound, std::size_t max_steps) {
  constexpr double kAlike = 0.01;
  constexpr double kRounding = 1e-9;
  std::vector<CycleShape> shapes;
  for (std::size_t steps = 1; steps <= max_steps; ++steps) {
    const auto most = static_cast<std::size_t>(static_cast<double>(steps) / bound * (1 + kRounding));
    for (std::size_t refreshes = 1; refreshes <= most; ++refreshes) {
      if (std::gcd(steps, refreshes) == 1) {
        shapes.push_back({.num_steps = steps, .num_refreshes = refreshes});
      }
    }
  }
  const auto key = [bound](const CycleShape& shape) {
    const double excess = shape.refresh_steps() / bound - 1;
    return std::tuple(std::floor(excess / kAlike + kRounding), shape.num_steps, shape.refresh_steps());
  };
  std::sort(shapes.begin(), shapes.end(),
            [&key](const CycleShape& a, const CycleShape& b) { return key(a) < key(b); });
  return shapes;
}

class Filling {
 public:
  Filling(const Schedule& base, const Filler& filler, const CostModel& costs, const FillOptions& options)
      : costs_(costs), options_(options), step_(base, filler, costs), refresh_(step_, filler, costs) {
    result_.refresh_bound = refresh_bound(step_, refresh_);
    result_.base_step_seconds = step_.seconds();
  }

  FillResult run() {
    const auto least_steps = static_cast<std::size_t>(std::ceil(result_.refresh_bound));
    const std::size_t max_steps = std::max(options_.max_cycle_steps, least_steps + least_steps / 4 + 1);
    for (CycleShape shape : candidates(result_.refresh_bound, max_steps)) {
      for (const double lag : kLags) {
        shape.lag_steps = lag;
        if (try_shape(shape)) return std::move(result_);
      }
    }
    base::fail(
        "the work does not fit into cycles of up to {} steps within the limits on memory and staleness",
        max_steps);
  }

 private:
  bool try_shape(const CycleShape& shape) {
    const std::optional<Placement> placement = place(step_, refresh_, costs_, shape);
    if (!placement) return false;
    result_.peak_kept_bytes = peak_kept_bytes(step_, refresh_, *placement, shape);
    if (!std::all_of(result_.peak_kept_bytes.begin(), result_.peak_kept_bytes.end(),
                     [this](double bytes) { return bytes <= options_.max_kept_bytes; })) {
      return false;
    }
    Freshness freshness;
    std::optional<Schedule> schedule =
        filled_cycle(step_, refresh_, *placement, shape, options_.max_staleness, freshness);
    if (!schedule) return false;
    const Simulation simulation = simulate(*schedule, costs_);
    if (simulation.step_seconds > result_.base_step_seconds * (1 + options_.margin)) return false;
    result_.schedule = std::move(*schedule);
    result_.refresh_steps = static_cast<double>(shape.num_steps) / static_cast<double>(shape.num_refreshes);
    result_.filled_step_seconds = simulation.step_seconds;
    result_.utilization = simulation.utilization;
    result_.mean_age = freshness.mean_age;
    result_.max_age = freshness.max_age;
    return true;
  }

  const CostModel& costs_;
  FillOptions options_;
  SteadyStep step_;
  Refresh refresh_;
  FillResult result_;
};

}  // namespace

FillResult fill(const Schedule& base, const Filler& filler, const CostModel& costs,
                const FillOptions& options) {
  require_options(options);
  return Filling(base, filler, costs, options).run();
}

}  // namespace plenum::schedule
