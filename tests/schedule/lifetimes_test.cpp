#include "plenum/schedule/core/lifetimes.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/rank_slots.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/schedule/random_execution.h"
#include "tests/support/function_costs.h"
#include "tests/support/kfac_schedule.h"

namespace plenum::schedule {
namespace {

using ::testing::ElementsAre;
using Counts = std::vector<std::size_t>;

/// Four ranks (one, where a generator has no pipeline), eight micro-batches.
Schedule example(const Generator& generator, Recomputation recomputation = Recomputation::None) {
  return generate(generator.name,
                  {.depth = generator.is_pipeline() ? 4u : 1u,
                   .num_micro_batches = 8,
                   .num_replicas = generator.name == "data-parallel" ? 2u : 1u,
                   .stage_layers = {generator.is_pipeline() ? std::uint16_t{1} : std::uint16_t{3}},
                   .num_buckets = 2,
                   .recomputation = recomputation});
}

/// K-FAC in its bubbles, kept over several steps.
Schedule filled(const Generator& generator) {
  const Schedule base = generate(generator.name, {.depth = 4, .num_micro_batches = 4, .stage_layers = {1}});
  const test::FunctionCosts costs([](Rank rank, const Action& action) {
    if (action.type == ActionType::CurvatureA || action.type == ActionType::CurvatureB) return 0.4;
    return action.type == ActionType::Invert ? 1.5 / action.num_pieces : UnitCosts().seconds(rank, action);
  });
  return fill(base, KfacFiller(2), costs).schedule;
}

std::vector<Schedule> all_examples() {
  std::vector<Schedule> schedules;
  for (const Generator& generator : all_generators()) {
    schedules.push_back(example(generator));
    schedules.push_back(example(generator, Recomputation::Mlp));
    schedules.push_back(example(generator, Recomputation::Full));
  }
  schedules.push_back(generate("interleaved", {.depth = 1, .num_micro_batches = 3, .stage_layers = {2}}));
  schedules.push_back(parse_schedule(test::kKfacSchedule, "kfac"));
  return schedules;
}

std::vector<RankSlots> slots_of(const Dataflow& dataflow) {
  const EventOrder order(dataflow);
  std::vector<RankSlots> slots;
  for (std::size_t rank = 0; rank < dataflow.schedule().ranks.size(); ++rank) {
    slots.emplace_back(order, Rank::at(rank));
  }
  return slots;
}

Counts counts(const std::vector<RankSlots>& slots, TenantKind kind) {
  Counts counts;
  for (const RankSlots& of_rank : slots) counts.push_back(of_rank.num_slots(kind));
  return counts;
}

Counts counts(const Schedule& schedule, TenantKind kind) {
  return counts(slots_of(Dataflow(schedule)), kind);
}

TEST(Lifetimes, GiveAMessageItsPlaceBeforeItsForwardRuns) {
  const auto inputs = [](std::string_view name) {
    return counts(example(generator_named(name)), TenantKind::Input);
  };
  const auto kept = [](std::string_view name) {
    return counts(example(generator_named(name)), TenantKind::Kept);
  };
  // Messages are received when they are sent, so an input of a later micro-batch may be there while an
  // earlier one's weight gradient still reads its own.
  EXPECT_THAT(inputs("interleaved"), ElementsAre(12, 11, 9, 7));
  EXPECT_THAT(kept("interleaved"), ElementsAre(11, 9, 7, 5));
  EXPECT_THAT(inputs("chimera"), ElementsAre(5, 6, 6, 5));
  EXPECT_THAT(kept("chimera"), ElementsAre(4, 5, 5, 4));
  EXPECT_THAT(inputs("zb-h1"), ElementsAre(4, 5, 5, 5));
  EXPECT_THAT(kept("zb-h1"), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(inputs("1f1b"), ElementsAre(4, 4, 3, 2));
  EXPECT_THAT(kept("1f1b"), ElementsAre(4, 3, 2, 1));
}

TEST(Lifetimes, KeepWhatIsSentUntilItHasCome) {
  // The last rank knows that a gradient has come when the next message of the rank before is there, which is
  // one later than it needs the place.
  const Schedule schedule = example(generator_named("1f1b"));
  EXPECT_THAT(counts(schedule, TenantKind::InputGradient), ElementsAre(1, 4, 2, 2));
  EXPECT_THAT(counts(schedule, TenantKind::Output), ElementsAre(4, 3, 2, 1));
}

TEST(Lifetimes, PlanOneMicroBatchAtATimeOnOneRank) {
  const Schedule schedule = generate("single", {.num_micro_batches = 5, .stage_layers = {3}});
  const std::vector<RankSlots> slots = slots_of(Dataflow(schedule));
  EXPECT_EQ(slots[0].num_slots(TenantKind::Kept), 3u);  // of its layers
  EXPECT_EQ(slots[0].num_slots(TenantKind::Input), 1u);
}

TEST(Lifetimes, RecomputeIntoOneLayerAtATime) {
  const Schedule schedule = parse_schedule(R"(plenum-schedule 1
layers 3
micro-batches 2
recompute full
rank 0 holds 0
0 compute: F0.0[0] F0.0[1] F0.0[2] RC0.0[2] B0.0[2] RC0.0[1] B0.0[1] RC0.0[0] B0.0[0] F0.1 RC0.1 B0.1 NS0 U0
0 data: N
)",
                                           "test");
  const Dataflow dataflow(schedule);
  const std::vector<Lifetime> all = lifetimes(dataflow, {}, EventOrder(dataflow).message_bounds({}));
  for (const Lifetime& life : all) {
    if (life.tenant.micro_batch != MicroBatchId{0}) continue;
    const std::int64_t layer = life.tenant.layer.value;
    if (life.tenant.kind == TenantKind::Recomputed) {
      EXPECT_EQ(life.time, (Interval{2 * (7 - 2 * layer), 2 * (8 - 2 * layer) + 1})) << layer;
    }
    if (life.tenant.kind == TenantKind::Input) {
      EXPECT_EQ(life.time, (Interval{2 * std::max<std::int64_t>(layer - 1, 0), 2 * (8 - 2 * layer) + 1}));
    }
  }
  const std::vector<RankSlots> slots = slots_of(dataflow);
  EXPECT_EQ(slots[0].num_slots(TenantKind::Input), 3u);
}

TEST(Lifetimes, LastUntilCurvatureOfLaterSteps) {
  const Schedule schedule = parse_schedule(R"(plenum-schedule 1
layers 1
micro-batches 1
preconditioner kfac
factors 1
staleness 4
rank 0 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0~2 KB0.0[0]/0~3 KI0[0]/0~3 P0~4 NS0 U0
0 data: N
)",
                                           "test");
  const std::vector<RankSlots> slots = slots_of(Dataflow(schedule));
  EXPECT_EQ(slots[0].num_slots(TenantKind::Kept), 4u);
  EXPECT_EQ(slots[0].num_slots(TenantKind::Input), 3u);  // curvature B does not read it
  std::vector<std::size_t> turns;
  for (std::uint64_t step = 0; step < 8; ++step) turns.push_back(slots[0].slot({}, step));
  EXPECT_THAT(std::vector(turns.begin(), turns.begin() + 4), testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(std::equal(turns.begin(), turns.begin() + 4, turns.begin() + 4));
}

TEST(ActivationPeaks, TellWhatCurvatureKeepsAlive) {
  const Schedule schedule = parse_schedule(R"(plenum-schedule 1
layers 2
micro-batches 2
preconditioner kfac
factors 1
staleness 1
rank 0 holds 0
0 compute: F0.0 B0.0 F0.1 B0.1 KA0.0[0]/0 KB0.0[0]/0 KA0.0[1]/0 KB0.0[1]/0 KA0.1[0]/0 KB0.1[0]/0 KA0.1[1]/0 KB0.1[1]/0 KI0[0]/0 KI0[1]/0 P0~1 NS0 U0
0 data: N
)",
                                           "test");
  const CheckResult result = check(schedule);
  ASSERT_TRUE(result.violations.empty()) << result.violations.front().why;
  EXPECT_THAT(result.peak_activation_layers, ElementsAre(2));
  EXPECT_THAT(result.peak_kept_layers, ElementsAre(4));
}

/// Tries orders in which a schedule can run; the first conflict.
std::string conflict_of(const Dataflow& dataflow, const std::vector<RankSlots>& slots,
                        std::size_t num_orders) {
  const std::size_t num_steps = std::max<std::size_t>(3, dataflow.schedule().num_steps() + 2);
  for (std::uint64_t seed = 0; seed < num_orders; ++seed) {
    const std::string conflict = RandomExecution(dataflow, slots, seed).run(num_steps);
    if (!conflict.empty()) return conflict;
  }
  return {};
}

TEST(Lifetimes, HoldWhereCurvatureWaitsForBubbles) {
  for (const Generator& generator : all_generators()) {
    if (!generator.is_pipeline()) continue;
    SCOPED_TRACE(generator.name);
    const Schedule schedule = filled(generator);
    const Dataflow dataflow(schedule);
    EXPECT_EQ(conflict_of(dataflow, slots_of(dataflow), 1), "");
  }
}

TEST(Lifetimes, PlanAsManySlotsAsSomeOrderOfLanesNeedsAndNoOrderExceeds) {
  for (const Schedule& schedule : all_examples()) {
    SCOPED_TRACE(schedule.name);
    const Dataflow dataflow(schedule);
    const std::vector<RankSlots> slots = slots_of(dataflow);
    std::vector<Counts> most(kNumTenantKinds, Counts(slots.size(), 0));
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      RandomExecution execution(dataflow, slots, seed);
      ASSERT_EQ(execution.run(3), "");
      for (std::size_t kind = 0; kind < kNumTenantKinds; ++kind) {
        for (std::size_t rank = 0; rank < slots.size(); ++rank) {
          most[kind][rank] =
              std::max(most[kind][rank], execution.most_taken(Rank::at(rank), static_cast<TenantKind>(kind)));
        }
      }
    }
    for (std::size_t kind = 0; kind < kNumTenantKinds; ++kind) {
      EXPECT_EQ(counts(slots, static_cast<TenantKind>(kind)), most[kind]) << "kind " << kind;
    }
  }
}

/// The plan with every lifetime on a rank changed.
std::vector<RankSlots> changed(const Dataflow& dataflow, const std::vector<RankSlots>& slots, Rank rank,
                               const MessageBounds& bounds, const std::function<void(Lifetime&)>& change) {
  std::vector<Lifetime> all = lifetimes(dataflow, rank, bounds);
  for (Lifetime& life : all) change(life);
  std::vector<RankSlots> others = slots;
  others[rank.index()] =
      RankSlots(all, dataflow.schedule().num_steps(), cycle_time(dataflow.schedule(), rank));
  return others;
}

TEST(Lifetimes, FailWhereTheyAreShortened) {
  std::size_t num_plans = 0;
  for (const Schedule& schedule : all_examples()) {
    const Dataflow dataflow(schedule);
    const std::vector<RankSlots> slots = slots_of(dataflow);
    const EventOrder order(dataflow);
    for (std::size_t r = 0; r < slots.size(); ++r) {
      const MessageBounds bounds = order.message_bounds(Rank::at(r));
      for (std::size_t kind = 0; kind < kNumTenantKinds; ++kind) {
        for (const bool is_late : {false, true}) {
          // Given back two actions too early, or taken two actions too late; what is too short stays.
          const std::vector<RankSlots> damaged =
              changed(dataflow, slots, Rank::at(r), bounds, [&](Lifetime& life) {
                if (static_cast<std::size_t>(life.tenant.kind) != kind) return;
                if (life.time.end - life.time.begin <= 4) return;
                (is_late ? life.time.begin : life.time.end) += is_late ? 4 : -4;
              });
          const auto of_kind = static_cast<TenantKind>(kind);
          if (damaged[r].num_slots(of_kind) == slots[r].num_slots(of_kind)) continue;
          ++num_plans;
          EXPECT_NE(conflict_of(dataflow, damaged, 60), "")
              << schedule.name << " rank " << r << " kind " << kind << (is_late ? " late" : " early");
        }
      }
    }
  }
  EXPECT_GT(num_plans, 50u);
}

TEST(SlotPlan, TakesAsFewSlotsAsMeet) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const auto cycle = static_cast<std::int64_t>(1 + random() % 20);
    std::vector<Interval> intervals(1 + random() % 12);
    for (Interval& interval : intervals) {
      interval.begin = static_cast<std::int64_t>(random() % 60) - 30;
      interval.end = interval.begin + 1 + static_cast<std::int64_t>(random() % 50);
    }
    const SlotPlan plan(intervals, cycle);
    // Twenty cycles, point by point.
    std::size_t most = 0;
    for (std::int64_t time = 400; time < 400 + 2 * cycle; ++time) {
      std::vector<std::size_t> slots;
      for (std::size_t i = 0; i < intervals.size(); ++i) {
        for (std::int64_t c = 0; c < 600; ++c) {
          const bool lies = intervals[i].begin + c * cycle <= time && time < intervals[i].end + c * cycle;
          if (lies) slots.push_back(plan.slot(i, static_cast<std::uint64_t>(c)));
        }
      }
      most = std::max(most, slots.size());
      std::sort(slots.begin(), slots.end());
      EXPECT_EQ(std::adjacent_find(slots.begin(), slots.end()), slots.end()) << "two in a slot";
      EXPECT_TRUE(slots.empty() || slots.back() < plan.num_slots());
    }
    EXPECT_EQ(plan.num_slots(), most);
  }
}

}  // namespace
}  // namespace plenum::schedule
