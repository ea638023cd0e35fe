// Filling as a run does it, by what its actions were measured to take, on a machine that is busy with other
// things.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/measured_costs.h"
#include "plenum/schedule/simulate/replay.h"

#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

/// Takes a usual time of its own for each type of action, which varies, and now and then much longer.
class BusyMachine {
 public:
  explicit BusyMachine(std::uint64_t seed) : random_(seed) {
    const double decades = uniform(0, 3);
    for (double& seconds : usual_) seconds = 1e-3 * std::pow(10, uniform(-decades, decades));
    variation_ = uniform(0, 0.5);
    interruptions_ = chance(0.3) ? 0.0 : uniform(0, 0.4);
    tick_ = chance(0.2) ? 1e-3 : 1e-9;
    piece_seconds_ = chance(0.5) ? 0.0 : 1e-3 * std::pow(10, uniform(-3, 1));
  }

  double uniform(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  /// One that was measured, of a schedule's actions.
  std::vector<RankTimes> cycle_of(const Schedule& schedule) {
    std::vector<RankTimes> times(schedule.ranks.size());
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        for (const Action& action : schedule.ranks[rank].lanes[lane].actions())
          times[rank][lane].push_back({1, 1 + seconds(action)});
      }
    }
    return times;
  }

 private:
  double seconds(const Action& action) {
    double seconds = usual_[static_cast<std::size_t>(action.type)] / action.num_pieces;
    if (action.num_pieces > 1) seconds += piece_seconds_;
    seconds *= std::exp(variation_ * uniform(-1, 1));
    if (chance(interruptions_)) seconds *= std::pow(10, uniform(0, 3));
    return std::floor(seconds / tick_) * tick_;  // none at all on a coarse clock
  }

  std::mt19937_64 random_;
  std::array<double, kNumActionTypes> usual_ = {};
  double variation_ = 0;
  double interruptions_ = 0;
  double tick_ = 0;
  double piece_seconds_ = 0;
};

/// How large the drawn pipelines are at most.
struct Sizes {
  std::size_t most_depth = 4;
  std::size_t most_layers = 2;
  std::size_t most_maps = 2;
  std::size_t most_cycle_steps = 4;
};

struct Drawn {
  std::string_view name;
  GeneratorOptions options;
  std::size_t num_maps = 1;
  FillOptions fill;

  std::string text() const {
    return fmt::format("{}, {} ranks, {} micro-batches, {} replicas, {} layers, {} maps, {}{}", name,
                       options.depth, options.num_micro_batches, options.num_replicas,
                       options.stage_layers[0], num_maps, fill.mode == FillMode::Fresh ? "fresh" : "deferred",
                       fill.drains ? ", drains" : "");
  }
};

Drawn draw(BusyMachine& random, const Sizes& sizes) {
  constexpr std::string_view kPipelines[] = {"gpipe", "1f1b", "chimera", "zb-h1", "interleaved"};
  const std::size_t depth = 2 * (1 + random.below(sizes.most_depth / 2));
  return {.name = kPipelines[random.below(std::size(kPipelines))],
          .options = {.depth = depth,
                      .num_micro_batches = depth,
                      .num_replicas = random.chance(0.75) ? 1u : 2u,
                      .stage_layers = {static_cast<std::uint16_t>(1 + random.below(sizes.most_layers))}},
          .num_maps = 1 + random.below(sizes.most_maps),
          .fill = {.mode = random.chance(0.5) ? FillMode::Fresh : FillMode::Deferred,
                   .max_cycle_steps = sizes.most_cycle_steps,
                   .max_staleness = 4 * sizes.most_cycle_steps,
                   .drains = random.chance(0.7)}};
}

/// Whether a schedule was made. There may be no room for the work; any other error fails the test.
bool is_filled(const Schedule& base, const Filler& filler, const CostModel& costs, const FillOptions& options,
               Schedule& filled) {
  try {
    filled = fill(base, filler, costs, options).schedule;
    require_checked(filled);
    return true;
  } catch (const base::UserError& error) {
    const std::string_view text = error.what();
    constexpr std::string_view kNoRoom[] = {"has no idle time to", "no cycle of up to",
                                            "filling makes a step at least", "steps of idle time"};
    const bool has_no_room = std::ranges::any_of(
        kNoRoom, [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
    EXPECT_TRUE(has_no_room) << text;
    return false;
  }
}

/// Fills as often as a run does: by steps with all work in each, and then by a cycle of filled steps. How
/// often that gave a schedule.
std::size_t fill_twice(std::uint64_t seed, const Sizes& sizes) {
  BusyMachine machine(seed);
  const Drawn drawn = draw(machine, sizes);
  SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << drawn.text());
  const Schedule base = generator_named(drawn.name).generate(drawn.options);
  const KfacFiller filler(drawn.num_maps);
  const Schedule unfilled = with_periodic_refresh(base, filler, 1);
  MeasuredCosts alone(unfilled);
  for (int step = 0; step < 4; ++step) alone.add(machine.cycle_of(unfilled), {});
  Schedule tried;
  if (!is_filled(base, filler, alone, drawn.fill, tried)) return 0;
  MeasuredCosts in_bubbles(tried, &alone);
  in_bubbles.add(machine.cycle_of(tried), {});
  Schedule filled;
  return is_filled(base, filler, in_bubbles, drawn.fill, filled) ? 2 : 1;
}

std::size_t fill_by_costs_of(std::uint64_t first_seed, std::size_t count, const Sizes& sizes) {
  std::size_t num_filled = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count && !testing::Test::HasFailure(); ++seed)
    num_filled += fill_twice(seed, sizes);
  return num_filled;
}

/// The pieces of the first rank were delayed, so that cutting seems to cost more than all pieces of a map of
/// the second rank took together.
TEST(FillByMeasuredCosts, RunsWherePiecesTookLessThanCuttingSeemsToCost) {
  using enum ActionType;
  const Schedule base =
      generator_named("1f1b").generate({.depth = 2, .num_micro_batches = 4, .stage_layers = {2}});
  const KfacFiller filler(1);
  const Schedule unfilled = with_periodic_refresh(base, filler, 1);
  const test::ConstantCosts known(
      {{Forward, 1.0}, {Backward, 2.0}, {CurvatureA, 0.1}, {CurvatureB, 0.1}, {Invert, 4.0}});
  MeasuredCosts alone(unfilled);
  alone.add(replay(unfilled, Dataflow(unfilled), known, 1).times, {});
  const FillOptions options{.mode = FillMode::Fresh, .drains = true};
  const Schedule tried = fill(base, filler, alone, options).schedule;
  std::vector<RankTimes> times = replay(tried, Dataflow(tried), known, 1).times;
  std::size_t num_delayed = 0;
  const std::span<const Action> actions = tried.ranks[0].lane(Lane::Compute).actions();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].num_pieces == 1) continue;
    times[0][static_cast<std::size_t>(Lane::Compute)][i].end += 2;
    ++num_delayed;
  }
  ASSERT_GT(num_delayed, 0U);
  MeasuredCosts in_bubbles(tried, &alone);
  in_bubbles.add(times, {});
  EXPECT_NO_THROW(require_checked(fill(base, filler, in_bubbles, options).schedule));
}

TEST(FillByMeasuredCosts, GivesSchedulesThatRun) {
  constexpr std::size_t kCount = 300;
  EXPECT_GT(fill_by_costs_of(0, kCount, {}), kCount / 2) << "otherwise this tests little";
}

TEST(FillByMeasuredCosts, DISABLED_SoakGivesSchedulesThatRun) {
  constexpr std::size_t kCount = 3000;
  constexpr Sizes kLarger = {.most_depth = 8, .most_layers = 2, .most_maps = 3, .most_cycle_steps = 8};
  EXPECT_GT(fill_by_costs_of(1'000'000, kCount, kLarger), kCount / 2);
}

}  // namespace
}  // namespace plenum::schedule
