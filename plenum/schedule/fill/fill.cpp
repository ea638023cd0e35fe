#include "plenum/schedule/fill/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include "plenum/base/check.h"
#include "plenum/schedule/fill/filled_cycle.h"
#include "plenum/schedule/fill/fresh_fill.h"
#include "plenum/schedule/fill/kept_memory.h"
#include "plenum/schedule/simulate/simulate.h"

namespace plenum::schedule {
namespace {

/// How many steps a refresh's work waits at most before it begins: with more to choose from, gaps are filled
/// better; with less, inverses are fresher.
constexpr double kLags[] = {0, 0.5, 1, 1.5, 2, 3};

/// After so many actions in attempts, of cycles that are alike only the shortest is tried: a few seconds.
constexpr std::size_t kManyActions = 5'000'000;

constexpr double kMebibyte = 1024.0 * 1024.0;
/// Parts of a step by which its length may differ through rounding alone.
constexpr double kRounding = 1e-9;

void require_options(const FillOptions& options) {
  base::require(options.margin >= 0, "the margin must not be negative: {}", options.margin);
  base::require(options.max_cycle_steps != 0, "a cycle has at least one step");
  base::require(options.max_kept_bytes >= 0, "the memory limit must not be negative: {}",
                options.max_kept_bytes);
  base::require(options.max_staleness <= kMaxAge, "an action is at most 254 steps stale: {}",
                options.max_staleness);
}

/// Refreshes that exceed the bound by about the same are alike: up to 1 %, to 1.4 %, to 2 %, to 2.8 % and so
/// on.
double excess_class(double excess) {
  constexpr double kAlike = 0.01;
  return excess < kAlike ? 0 : 1 + std::floor(2 * std::log2(excess / kAlike));
}

/// Cycles of at most `max_steps` steps that leave room for their refreshes, these at most `max_period` steps
/// apart, best first: of those with alike refreshes the shortest, and only a few.
std::vector<CycleShape> candidates(double bound, std::size_t max_steps, std::size_t max_period, bool drains) {
  constexpr std::size_t kMostAlike = 6;
  std::vector<CycleShape> shapes;
  for (std::size_t steps = 1; steps <= max_steps; ++steps) {
    auto most = static_cast<std::size_t>(static_cast<double>(steps) / bound * (1 + kRounding));
    if (drains) most = std::min<std::size_t>(most, 1);
    for (std::size_t refreshes = 1; refreshes <= most; ++refreshes) {
      if (std::gcd(steps, refreshes) != 1 || steps > refreshes * max_period) continue;
      shapes.push_back({.num_steps = steps, .num_refreshes = refreshes});
    }
  }
  const auto class_of = [bound](const CycleShape& shape) {
    return excess_class(shape.refresh_steps() / bound - 1);
  };
  std::sort(shapes.begin(), shapes.end(), [&class_of](const CycleShape& a, const CycleShape& b) {
    return std::tuple(class_of(a), a.num_steps, a.refresh_steps()) <
           std::tuple(class_of(b), b.num_steps, b.refresh_steps());
  });
  std::vector<CycleShape> chosen;
  std::size_t num_alike = 0;
  for (const CycleShape& shape : shapes) {
    num_alike = !chosen.empty() && class_of(shape) == class_of(chosen.back()) ? num_alike + 1 : 0;
    if (num_alike < kMostAlike) chosen.push_back(shape);
  }
  return chosen;
}

class Filling {
 public:
  Filling(const Schedule& base, const Filler& filler, const CostModel& costs, const FillOptions& options)
      : costs_(costs),
        options_(options),
        step_(base, filler, costs),
        refresh_(step_, filler, costs),
        bound_(least_refresh_steps(step_, refresh_)) {}

  FillResult run() {
    require_staleness();
    const std::size_t limit = max_cycle_steps();
    const std::size_t raised = std::max(limit, least_cycle_steps());
    if (std::isfinite(options_.max_kept_bytes)) require_memory(raised);
    if (std::optional<FillResult> result = fill_within(limit)) return std::move(*result);
    if (raised > limit) {
      if (std::optional<FillResult> result = fill_within(raised)) return std::move(*result);
    }
    fail_at_limit(raised);
  }

 private:
  /// How near the attempts came to the limits, as far as they got; infinite where none did.
  struct Nearest {
    double kept_bytes = std::numeric_limits<double>::infinity();
    double step_seconds = std::numeric_limits<double>::infinity();
  };
  struct Attempt {
    Schedule schedule = {};
    Freshness freshness = {};
    std::vector<double> peak_kept_bytes = {};
  };

  /// The best cycle of at most `max_steps` steps; nothing if none has room.
  std::optional<FillResult> fill_within(std::size_t max_steps) {
    std::optional<double> last_class;
    for (const CycleShape& shape : candidates(bound_, max_steps, max_period(), options_.drains)) {
      const double shape_class = excess_class(shape.refresh_steps() / bound_ - 1);
      if (num_tried_actions_ > kManyActions && shape_class == last_class) continue;
      last_class = shape_class;
      std::optional<Attempt> attempt = freshest(shape);
      if (!attempt) continue;
      const Simulation simulation = simulate(attempt->schedule, costs_);
      nearest_.step_seconds = std::min(nearest_.step_seconds, simulation.step_seconds);
      if (simulation.step_seconds > step_.seconds() * (1 + options_.margin + kRounding)) continue;
      return FillResult{.schedule = std::move(attempt->schedule),
                        .refresh_steps = shape.refresh_steps(),
                        .refresh_bound = bound_,
                        .base_step_seconds = step_.seconds(),
                        .filled_step_seconds = simulation.step_seconds,
                        .utilization = simulation.utilization,
                        .peak_kept_bytes = std::move(attempt->peak_kept_bytes),
                        .mean_age = attempt->freshness.mean_age,
                        .max_age = attempt->freshness.max_age};
    }
    return std::nullopt;
  }

  /// Statistics are used at least until the step before the next ones are taken.
  std::size_t max_period() const { return options_.max_staleness + 1; }

  void require_staleness() const {
    base::require(bound_ <= static_cast<double>(max_period()),
                  "a refresh needs {:.1f} steps of idle time; a staleness of at most {} allows {}", bound_,
                  options_.max_staleness, max_period());
  }

  /// Cycles of several refreshes come closest to the bound.
  std::size_t max_cycle_steps() const {
    constexpr double kRefreshes = 5;
    constexpr double kShort = 48;
    constexpr double kLong = 128;
    const auto enough = static_cast<std::size_t>(std::clamp(kRefreshes * bound_, kShort, kLong));
    return options_.max_cycle_steps.value_or(enough);
  }

  /// One refresh, and as much room again.
  std::size_t least_cycle_steps() const {
    return std::min(static_cast<std::size_t>(std::ceil(2 * bound_)), max_period());
  }

  [[noreturn]] void fail_at_limit(std::size_t max_steps) const {
    if (std::isfinite(nearest_.step_seconds)) {
      base::fail("filling makes a step at least {:.3f} % longer; the margin is {:.3f} %",
                 100 * (nearest_.step_seconds / step_.seconds() - 1), 100 * options_.margin);
    }
    if (nearest_.kept_bytes > options_.max_kept_bytes && std::isfinite(nearest_.kept_bytes)) {
      base::fail("the work keeps at least {:.1f} MiB alive on a rank; the limit is {:.1f} MiB",
                 nearest_.kept_bytes / kMebibyte, options_.max_kept_bytes / kMebibyte);
    }
    const bool has_room = place(step_, refresh_, costs_, {.shape = {.num_steps = max_steps}}).has_value();
    base::require(
        !has_room,
        "the work gets more than {} steps stale, which is the limit; a refresh needs {:.1f} steps of "
        "idle time",
        options_.max_staleness, bound_);
    base::fail("no cycle of up to {} steps has room for the work; a refresh needs {:.1f} steps of idle time",
               max_steps, bound_);
  }

  /// One refresh alone, its statistics done as early as can be, needs the least.
  void require_memory(std::size_t max_steps) const {
    const PlacementOptions slowest{.shape = {.num_steps = max_steps, .num_refreshes = 1},
                                   .order = WorkOrder::StatisticsFirst};
    const std::optional<Placement> placement = place(step_, refresh_, costs_, slowest);
    if (!placement) return;
    const std::vector<double> peaks = peak_kept_bytes(step_, refresh_, *placement, slowest.shape);
    const auto peak = std::max_element(peaks.begin(), peaks.end());
    base::require(*peak <= options_.max_kept_bytes,
                  "the work keeps at least {:.1f} MiB alive on rank {}; the limit is {:.1f} MiB",
                  *peak / kMebibyte, peak - peaks.begin(), options_.max_kept_bytes / kMebibyte);
  }

  /// Of the ways to place the work into a cycle within the limits, the one with the freshest inverses.
  std::optional<Attempt> freshest(const CycleShape& shape) {
    std::optional<Attempt> best = freshest(shape, WorkOrder::OldestFirst);
    if (best || !std::isfinite(options_.max_kept_bytes)) return best;
    return freshest(shape, WorkOrder::StatisticsFirst);
  }

  std::optional<Attempt> freshest(const CycleShape& shape, WorkOrder order) {
    std::optional<Attempt> best;
    for (const double lag : kLags) {
      if (options_.drains && lag > 0) break;
      std::optional<Attempt> attempt = attempt_with({.shape = shape,
                                                     .lag_steps = lag,
                                                     .order = order,
                                                     .max_age = options_.max_staleness,
                                                     .drains = options_.drains});
      if (!attempt) continue;
      const double kept_bytes =
          *std::max_element(attempt->peak_kept_bytes.begin(), attempt->peak_kept_bytes.end());
      nearest_.kept_bytes = std::min(nearest_.kept_bytes, kept_bytes);
      // Work that waits longer only keeps more alive, and gets staler.
      if (kept_bytes > options_.max_kept_bytes) break;
      if (best && attempt->freshness.mean_age >= best->freshness.mean_age) break;
      best = std::move(attempt);
    }
    return best;
  }

  std::optional<Attempt> attempt_with(const PlacementOptions& options) {
    num_tried_actions_ += options.shape.num_steps * step_.schedule().num_actions() +
                          options.shape.num_refreshes * refresh_.items().size();
    const std::optional<Placement> placement = place(step_, refresh_, costs_, options);
    if (!placement) return std::nullopt;
    Attempt attempt{.peak_kept_bytes = peak_kept_bytes(step_, refresh_, *placement, options.shape)};
    std::optional<Schedule> schedule =
        filled_cycle(step_, refresh_, *placement, options.shape, options_.max_staleness, attempt.freshness);
    if (!schedule) return std::nullopt;
    attempt.schedule = std::move(*schedule);
    return attempt;
  }

  const CostModel& costs_;
  FillOptions options_;
  SteadyStep step_;
  Refresh refresh_;
  double bound_;
  Nearest nearest_;
  std::size_t num_tried_actions_ = 0;
};

}  // namespace

FillResult fill(const Schedule& base, const Filler& filler, const CostModel& costs,
                const FillOptions& options) {
  require_options(options);
  require_well_formed(base);
  if (options.mode == FillMode::Fresh) return fill_fresh(base, filler, costs, options);
  return Filling(base, filler, costs, options).run();
}

}  // namespace plenum::schedule
