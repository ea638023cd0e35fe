// Every schedule computes what the serial loops compute in the memory planned for it, and in no less.

#include <functional>

#include <gtest/gtest.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/schedule/core/rank_slots.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/pipeline/late_reading_communicator.h"
#include "tests/pipeline/toy_run.h"
#include "tests/support/fitted_options.h"
#include "tests/support/function_costs.h"

namespace plenum::pipeline {
namespace {

using schedule::Generator;
using schedule::generator_named;
using schedule::GeneratorOptions;
using schedule::Lifetime;
using schedule::Rank;
using schedule::RankSlots;
using schedule::Recomputation;
using schedule::Schedule;
using schedule::Sharding;
using schedule::TenantKind;

ToyRun::Communicators late_reading_ranks(std::size_t num_ranks) {
  comm::local::LocalWorld world(num_ranks);
  ToyRun::Communicators communicators;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    communicators.push_back(
        std::make_unique<comm::LateReadingCommunicator>(world.communicator(Rank::at(rank))));
  }
  return communicators;
}

Schedule generate(const Generator& generator, const GeneratorOptions& options) {
  return generator.generate(test::fitted(generator, options));
}

TEST(PlannedMemory, HoldsWhatIsSentUntilItIsReceived) {
  for (const Generator& generator : schedule::all_generators()) {
    for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
      for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
        SCOPED_TRACE(generator.name);
        const Schedule schedule = generate(generator, {.depth = 4,
                                                       .num_micro_batches = 8,
                                                       .num_replicas = sharding == Sharding::None ? 1u : 2u,
                                                       .stage_layers = {2},
                                                       .num_buckets = 2,
                                                       .recomputation = recomputation,
                                                       .sharding = sharding});
        EXPECT_EQ(difference_from_serial(schedule, 3, {}, late_reading_ranks(schedule.ranks.size())), "");
      }
    }
  }
}

TEST(PlannedMemory, HoldsWhatFillersKeepAlive) {
  const test::FunctionCosts costs(&toy_seconds);
  for (const Generator& generator : schedule::all_generators()) {
    if (!generator.is_pipeline()) continue;
    SCOPED_TRACE(generator.name);
    const Schedule base = generator.generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {1}});
    const schedule::KfacFiller kfac(2);
    for (const schedule::FillResult& filled :
         {schedule::fill(base, kfac, costs), schedule::fill(base, schedule::ShampooFiller(2), costs),
          schedule::fill(base, kfac, costs, {.mode = schedule::FillMode::Fresh, .margin = 0.1})}) {
      EXPECT_EQ(difference_from_serial(filled.schedule, filled.schedule.num_steps() + filled.max_age + 1, {},
                                       late_reading_ranks(base.ranks.size())),
                "");
    }
  }
}

/// Runs a schedule in memory for other lifetimes than its own. With the same, it is right.
std::string difference_with(const Schedule& schedule, const std::function<void(Lifetime&)>& change) {
  return difference_from_serial(
      schedule, schedule.num_steps() + schedule.problem.staleness + 2,
      {.hang_limit = std::chrono::seconds(5)}, late_reading_ranks(schedule.ranks.size()),
      [&change](const Schedule& of, const schedule::Dataflow& dataflow, Rank rank) {
        std::vector<Lifetime> lifetimes =
            schedule::lifetimes(dataflow, rank, schedule::EventOrder(dataflow).message_bounds(rank));
        for (Lifetime& life : lifetimes) change(life);
        return std::make_unique<ToyProgram>(
            of, dataflow, rank, RankSlots(lifetimes, of.num_steps(), schedule::cycle_time(of, rank)));
      });
}

/// Of the first rank.
std::size_t num_kept_slots(const Schedule& schedule, const std::function<void(Lifetime&)>& change) {
  const schedule::Dataflow dataflow(schedule);
  std::vector<Lifetime> lifetimes =
      schedule::lifetimes(dataflow, {}, schedule::EventOrder(dataflow).message_bounds({}));
  for (Lifetime& life : lifetimes) change(life);
  return RankSlots(lifetimes, schedule.num_steps(), schedule::cycle_time(schedule, {}))
      .num_slots(TenantKind::Kept);
}

TEST(PlannedMemory, IsTooSmallWithASlotLess) {
  for (const std::string_view name : {"gpipe", "1f1b", "zb-h1", "interleaved", "chimera"}) {
    SCOPED_TRACE(name);
    const Schedule schedule =
        generate(generator_named(name), {.depth = 4, .num_micro_batches = 8, .stage_layers = {1}});
    // The compute lane needs them all, whenever messages come.
    std::int64_t cut = 0;
    const std::function<void(Lifetime&)> shorten = [&](Lifetime& life) {
      if (life.tenant.kind == TenantKind::Kept) {
        life.time.end = std::max(life.time.begin + 1, life.time.end - cut);
      }
    };
    EXPECT_EQ(difference_with(schedule, shorten), "");
    const std::size_t planned = num_kept_slots(schedule, shorten);
    while (num_kept_slots(schedule, shorten) == planned) ++cut;
    EXPECT_EQ(num_kept_slots(schedule, shorten), planned - 1);
    EXPECT_NE(difference_with(schedule, shorten), "");
  }
}

/// Micro-batch 0 of the first step is read by curvature in the second.
constexpr std::string_view kLateCurvature = R"(plenum-schedule 1
layers 1
micro-batches 2
preconditioner kfac
factors 2
staleness 2
rank 0 holds 0
0 compute: F0.0 B0.0 F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 KA0.1[0]/1 KB0.1[0]/1 P0~2 NS0 U0 | F0.0 B0.0 F0.1 B0.1 KA0.0[0]/0~1 KB0.0[0]/0~1 KA0.0[0]/1~1 KB0.0[0]/1~1 KI0[0]/0~1 KI0[0]/1~1 P0~1 NS0 U0
0 data: N | N
)";

TEST(PlannedMemory, LastsUntilTheCurvatureOfALaterStep) {
  const Schedule schedule = schedule::parse_schedule(kLateCurvature, "test");
  EXPECT_EQ(difference_with(schedule, [](Lifetime&) {}), "");
  // As if curvature did not count.
  EXPECT_NE(difference_with(schedule,
                            [](Lifetime& life) {
                              if (life.tenant.kind == TenantKind::Kept) life.time.end = life.time.begin + 3;
                            }),
            "");
}

TEST(PlannedMemory, OfAScheduleDoesNotFitOneThatReadsLater) {
  const auto zero_bubble = [](std::string_view end) {
    return schedule::parse_schedule(fmt::format(R"(plenum-schedule 1
layers 1
micro-batches 3
rank 0 holds 0
0 compute: F0.0 I0.0 {} NS0 U0
0 data: N
)",
                                                end),
                                    "test");
  };
  const Schedule early = zero_bubble("W0.0 F0.1 I0.1 W0.1 F0.2 I0.2 W0.2");
  const Schedule late = zero_bubble("F0.1 I0.1 W0.0 W0.1 F0.2 I0.2 W0.2");
  const auto with_plan_of = [](const Schedule& planned, const Schedule& run) {
    return difference_from_serial(
        run, 3, {}, {}, [&planned](const Schedule& of, const schedule::Dataflow& dataflow, Rank rank) {
          const schedule::Dataflow other(planned);
          return std::make_unique<ToyProgram>(of, dataflow, rank, toy_slots(other, rank));
        });
  };
  EXPECT_EQ(with_plan_of(early, early), "");
  EXPECT_EQ(with_plan_of(late, late), "");
  EXPECT_EQ(with_plan_of(late, early), "");
  EXPECT_NE(with_plan_of(early, late), "");
}

}  // namespace
}  // namespace plenum::pipeline
