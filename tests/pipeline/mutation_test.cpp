#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/function_costs.h"
#include "plenum/schedule/simulate/profile_costs.h"
#include "plenum/schedule/text/parse_schedule.h"
#include "plenum/schedule/text/schedule_text.h"

#include "tests/pipeline/schedule_mutation.h"
#include "tests/pipeline/toy_run.h"
#include "tests/support/blocking_communicator.h"
#include "tests/support/fitted_options.h"
#include "tests/support/kfac_schedule.h"

namespace plenum::pipeline {
namespace {

using schedule::Schedule;

/// Roots a step late, in two pieces on the first stage.
constexpr std::string_view kShampoo = R"(plenum-schedule 1
layers 2 1
micro-batches 2
preconditioner shampoo
factors 1
staleness 1
tied
rank 0 holds 0
rank 1 holds 1
0 compute: SR0[0]/0#0/2~1 F0.0 SR0[0]/0#1/2~1 F0.1 SR0[1]/0~1 B0.0 B0.1 SA0 P0~1 NS0 U0
0 data: TR N
0 pipe: SF0.0 SF0.1 RB0.0 RB0.1
1 compute: SR1[2]/0~1 F1.0 B1.0 F1.1 B1.1 SA1 P1~1 NS1 U1
1 data: TR N
1 pipe: RF1.0 RF1.1 SB1.0 SB1.1
)";

using schedule::GeneratorOptions;
using schedule::Recomputation;
using schedule::Sharding;

Schedule generate(std::string_view name, const GeneratorOptions& options) {
  return schedule::generator_named(name).generate(options);
}

/// A pipeline of two stages with K-FAC in its bubbles.
Schedule filled(std::string_view name, std::size_t num_replicas) {
  const Schedule base = generate(name, {.depth = 2,
                                        .num_micro_batches = 2,
                                        .num_replicas = num_replicas,
                                        .stage_layers = {1},
                                        .has_tied_parameters = true});
  const schedule::ProfileCosts costs(base,
                                     {.forward_seconds = 1,
                                      .backward_seconds = 2,
                                      .curvature_seconds = 1,
                                      .inversion_seconds = 2,
                                      .precondition_seconds = 0.1},
                                     {.maps = {{}, {}}});
  return schedule::fill(base, schedule::KfacFiller(2), costs).schedule;
}

/// Something small to damage.
struct Original {
  const char* name;
  Schedule (*make)();
};

constexpr Original kOriginals[] = {
    {"Single",
     [] {
       return generate("single", {.num_micro_batches = 2,
                                  .stage_layers = {2},
                                  .recomputation = Recomputation::Full,
                                  .has_tied_parameters = true});
     }},
    {"DataParallel",
     [] {
       return generate("data-parallel", {.num_micro_batches = 2,
                                         .num_replicas = 2,
                                         .stage_layers = {2},
                                         .num_buckets = 2,
                                         .sharding = Sharding::Optimizer});
     }},
    {"GPipe",
     [] {
       return generate("gpipe", {.depth = 3, .num_micro_batches = 2, .stage_layers = {1, 2, 1}});
     }},
    {"Replicated1F1B",
     [] {
       return generate("1f1b", {.depth = 2,
                                .num_micro_batches = 3,
                                .num_replicas = 2,
                                .stage_layers = {2},
                                .num_buckets = 2,
                                .has_tied_parameters = true});
     }},
    {"Recomputed1F1B",
     [] {
       return generate("1f1b", {.depth = 3,
                                .num_micro_batches = 3,
                                .stage_layers = {1},
                                .recomputation = Recomputation::Full,
                                .has_tied_parameters = true});
     }},
    {"Interleaved",
     [] { return generate("interleaved", {.depth = 2, .num_micro_batches = 2, .stage_layers = {1}}); }},
    {"InterleavedOnOneRank",
     [] {
       return generate(
           "interleaved",
           {.depth = 1, .num_micro_batches = 2, .stage_layers = {1}, .has_tied_parameters = true});
     }},
    {"Chimera",
     [] {
       return generate("chimera", {.depth = 2,
                                   .num_micro_batches = 2,
                                   .stage_layers = {2},
                                   .num_buckets = 2,
                                   .sharding = Sharding::Optimizer,
                                   .has_tied_parameters = true});
     }},
    {"ZeroBubble",
     [] { return generate("zb-h1", {.depth = 3, .num_micro_batches = 3, .stage_layers = {1}}); }},
    {"Kfac", [] { return schedule::parse_schedule(test::kKfacSchedule, "kfac"); }},
    {"Shampoo", [] { return schedule::parse_schedule(kShampoo, "shampoo"); }},
    {"Filled1F1B", [] { return filled("1f1b", 1); }},
    {"FilledGPipe", [] { return filled("gpipe", 2); }},
};

/// Long enough that values of the first steps have been used and replaced.
std::uint64_t num_steps_to_run(const Schedule& schedule) {
  return schedule.problem.staleness + 2 * schedule.num_steps() + 1;
}

/// How a run differs from the serial one on an engine with buffers or on one without; empty if it does not.
std::string difference(const Schedule& schedule, const ExecutorOptions& options, bool has_buffers) {
  try {
    return difference_from_serial(
        schedule, num_steps_to_run(schedule), options,
        has_buffers ? ToyRun::Communicators() : test::blocking_ranks(schedule.ranks.size()));
  } catch (const std::exception& error) {
    return error.what();
  }
}

struct Tally {
  std::size_t refused = 0;
  std::size_t accepted = 0;
  std::size_t refused_run = 0;        ///< of the refused, those that were run all the same
  std::size_t refused_but_right = 0;  ///< and came to the right result
};

class Mutations : public testing::TestWithParam<Original> {};

/// A refused schedule may read a value while another thread still makes it. That is one of the ways in which
/// it is wrong, and ThreadSanitizer would say so; there only what is accepted runs, which must be clean.
#if defined(__SANITIZE_THREAD__)
constexpr bool kRunsRefused = false;
#else
constexpr bool kRunsRefused = true;
#endif

/// Damages a schedule many times: each damage is either refused, or harmless with and without buffers. One of
/// `run_one_refused_of` refused schedules runs, too.
Tally damage(const Schedule& original, std::size_t num_mutants, std::size_t run_one_refused_of) {
  const ExecutorOptions patient{.hang_limit = std::chrono::seconds(20)};
  const ExecutorOptions unchecked{.checked = ExecutorOptions::Checked::No,
                                  .hang_limit = std::chrono::milliseconds(40)};
  std::mt19937_64 random(2026);
  Tally tally;
  for (std::size_t i = 0; i < num_mutants; ++i) {
    const schedule::Mutant mutant = schedule::mutate(original, random);
    if (schedule::check(mutant.schedule).violations.empty()) {
      ++tally.accepted;
      for (const bool has_buffers : {true, false}) {
        EXPECT_EQ(difference(mutant.schedule, patient, has_buffers), "")
            << (has_buffers ? "with buffers" : "without buffers") << ", damage " << i << ": " << mutant.damage
            << '\n'
            << schedule::print_schedule_text(mutant.schedule);
      }
      continue;
    }
    if (tally.refused++ % run_one_refused_of != 0 || !kRunsRefused) continue;
    ++tally.refused_run;
    tally.refused_but_right += difference(mutant.schedule, unchecked, false).empty();
  }
  return tally;
}

/// What is refused is seldom harmless.
TEST_P(Mutations, AreRefusedOrHarmless) {
  const Schedule original = GetParam().make();
  ASSERT_EQ(difference_from_serial(original, num_steps_to_run(original)), "");
  const Tally tally = damage(original, 500, 40);
  RecordProperty("refused", static_cast<int>(tally.refused));
  RecordProperty("accepted", static_cast<int>(tally.accepted));
  RecordProperty("refused_run", static_cast<int>(tally.refused_run));
  RecordProperty("refused_but_right", static_cast<int>(tally.refused_but_right));
  EXPECT_GT(tally.accepted, 0u);
  EXPECT_GT(tally.refused, tally.accepted);
  if (kRunsRefused) {
    EXPECT_LT(tally.refused_but_right * 4, tally.refused_run);
  }
}

/// The long form of the same.
TEST_P(Mutations, DISABLED_SoakAreRefusedOrHarmless) {
  damage(GetParam().make(), 10'000, 200);
}

INSTANTIATE_TEST_SUITE_P(Of, Mutations, testing::ValuesIn(kOriginals),
                         [](const auto& original) { return original.param.name; });

/// Every generator alone and, where it leaves idle time, with every filler.
std::map<std::string, Schedule> all_schedules() {
  std::map<std::string, Schedule> schedules;
  for (const schedule::Generator& generator : schedule::all_generators()) {
    const auto generated = [&](GeneratorOptions options) {
      return generator.generate(test::fitted(generator, std::move(options)));
    };
    const std::string name(generator.name);
    schedules[name] = generated({.depth = 3,
                                 .num_micro_batches = 3,
                                 .num_replicas = 2,
                                 .stage_layers = {2},
                                 .num_buckets = 2,
                                 .has_tied_parameters = true});
    schedules[name + " recomputed"] = generated({.depth = 2,
                                                 .num_micro_batches = 4,
                                                 .num_replicas = 2,
                                                 .stage_layers = {2},
                                                 .recomputation = Recomputation::Full,
                                                 .sharding = Sharding::Optimizer});
    if (!generator.is_pipeline()) continue;
    const schedule::FunctionCosts costs(&toy_seconds);
    const Schedule base = generated({.depth = 4, .num_micro_batches = 4, .stage_layers = {1}});
    const Schedule replicated = generated({.depth = 4,
                                           .num_micro_batches = 2,
                                           .num_replicas = 2,
                                           .stage_layers = {1},
                                           .has_tied_parameters = true});
    schedules[name + " with kfac"] = schedule::fill(base, schedule::KfacFiller(1), costs).schedule;
    schedules[name + " with kfac on replicas"] =
        schedule::fill(replicated, schedule::KfacFiller(2), costs).schedule;
    schedules[name + " with shampoo"] = schedule::fill(base, schedule::ShampooFiller(2), costs).schedule;
  }
  return schedules;
}

TEST(Damages, DISABLED_SoakOfEveryGeneratorAndFiller) {
  for (const auto& [name, schedule] : all_schedules()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(difference(schedule, {}, true), "");
    ASSERT_EQ(difference(schedule, {}, false), "");
    const Tally tally = damage(schedule, 10'000, 1'000);
    fmt::print("{}: {} refused, {} harmless\n", name, tally.refused, tally.accepted);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace plenum::pipeline
