#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"
#include "plenum/schedule/text/schedule_text.h"

#include "tests/pipeline/schedule_mutation.h"
#include "tests/pipeline/toy_run.h"
#include "tests/support/blocking_communicator.h"
#include "tests/support/fitted_options.h"
#include "tests/support/function_costs.h"
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
0 compute: SR0[0]/0#0/2~1 F0.0 SR0[0]/0#1/2~1 F0.1 SR0[1]/0~1 B0.0 B0.1 NS0 SA0 P0~1 U0
0 data: TR N
0 pipe: SF0.0 SF0.1 RB0.0 RB0.1
1 compute: SR1[2]/0~1 F1.0 B1.0 F1.1 B1.1 NS1 SA1 P1~1 U1
1 data: TR N
1 pipe: RF1.0 RF1.1 SB1.0 SB1.1
)";

using schedule::GeneratorOptions;
using schedule::Recomputation;
using schedule::Sharding;

/// A schedule to damage.
struct Original {
  std::string name;  ///< as a test's
  std::function<Schedule()> make;

  friend void PrintTo(const Original& original, std::ostream* out) { *out << original.name; }
};

/// "zb-h1" as a part of a test's name: "zb_h1".
std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// A generator alone: on replicas, with recomputation and a sharded optimizer.
void add_generated(const schedule::Generator& generator, std::vector<Original>& originals) {
  const std::string name = test_name(std::string(generator.name));
  originals.push_back({name, [&generator] {
                         return generator.generate(test::fitted(generator, {.depth = 3,
                                                                            .num_micro_batches = 3,
                                                                            .num_replicas = 2,
                                                                            .stage_layers = {2},
                                                                            .num_buckets = 2,
                                                                            .has_tied_parameters = true}));
                       }});
  originals.push_back({name + "_recomputed", [&generator] {
                         return generator.generate(
                             test::fitted(generator, {.depth = 2,
                                                      .num_micro_batches = 4,
                                                      .num_replicas = 2,
                                                      .stage_layers = {2},
                                                      .recomputation = Recomputation::Full,
                                                      .sharding = Sharding::Optimizer,
                                                      .has_tensor_norms = true}));
                       }});
}

/// Replicas that shard gradients, or parameters too: places of gradients in flight and of gathered parameters
/// are used again.
void add_sharded(const char* name, Sharding sharding, std::uint16_t num_layers,
                 std::vector<Original>& originals) {
  for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
    originals.push_back(
        {fmt::format("sharded_{}{}", name, recomputation == Recomputation::None ? "" : "_recomputed"),
         [recomputation, sharding, num_layers] {
           return schedule::generator_named("data-parallel")
               .generate({.num_micro_batches = 3,
                          .num_replicas = 2,
                          .stage_layers = {num_layers},
                          .num_buckets = num_layers,
                          .recomputation = recomputation,
                          .sharding = sharding,
                          .has_tied_parameters = true,
                          .has_tensor_norms = true});
         }});
  }
}

/// Replicas that reduce the halves of a tied parameter's gradient by themselves.
void add_tied_halves(std::vector<Original>& originals) {
  for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
    const bool is_sharded = sharding != Sharding::None;
    originals.push_back({is_sharded ? "tied_halves_sharded" : "tied_halves", [sharding, is_sharded] {
                           return schedule::generator_named("data-parallel")
                               .generate(
                                   {.num_micro_batches = 2,
                                    .num_replicas = 3,
                                    .stage_layers = {4},
                                    .num_buckets = 2,
                                    .recomputation = is_sharded ? Recomputation::Full : Recomputation::None,
                                    .sharding = sharding,
                                    .has_tied_parameters = true,
                                    .has_tied_halves = true,
                                    .has_tensor_norms = true});
                         }});
  }
}

/// A pipeline with a filler's work in its bubbles.
void add_filled(const schedule::Generator& generator, std::vector<Original>& originals) {
  const auto add = [&](std::string_view how, std::shared_ptr<const schedule::Filler> filler,
                       const GeneratorOptions& options,
                       schedule::FillMode mode = schedule::FillMode::Deferred) {
    originals.push_back({fmt::format("{}_{}", test_name(std::string(generator.name)), how),
                         [&generator, filler = std::move(filler), options, mode] {
                           return schedule::fill(generator.generate(test::fitted(generator, options)),
                                                 *filler, test::FunctionCosts(&toy_seconds),
                                                 {.mode = mode, .margin = 0.1})
                               .schedule;
                         }});
  };
  const GeneratorOptions one{.depth = 4, .num_micro_batches = 4, .stage_layers = {1}};
  const GeneratorOptions replicated{.depth = 4,
                                    .num_micro_batches = 2,
                                    .num_replicas = 2,
                                    .stage_layers = {1},
                                    .has_tied_parameters = true};
  add("kfac", std::make_shared<schedule::KfacFiller>(1), one);
  add("kfac_on_replicas", std::make_shared<schedule::KfacFiller>(2), replicated);
  add("fresh_kfac", std::make_shared<schedule::KfacFiller>(2), one, schedule::FillMode::Fresh);
  add("fresh_kfac_on_replicas", std::make_shared<schedule::KfacFiller>(2), replicated,
      schedule::FillMode::Fresh);
  add("shampoo", std::make_shared<schedule::ShampooFiller>(2), one);
}

/// Every generator alone and, where it leaves idle time, with every filler; and what none of them makes.
std::vector<Original> originals() {
  std::vector<Original> all;
  for (const schedule::Generator& generator : schedule::all_generators()) {
    add_generated(generator, all);
    if (generator.is_pipeline()) add_filled(generator, all);
  }
  add_sharded("gradients", Sharding::Gradients, 4, all);
  add_sharded("parameters", Sharding::Parameters, 6, all);
  add_tied_halves(all);
  all.push_back({"interleaved_on_one_rank", [] {
                   return schedule::generator_named("interleaved")
                       .generate({.num_micro_batches = 2, .stage_layers = {1}, .has_tied_parameters = true});
                 }});
  all.push_back({"written_kfac", [] { return schedule::parse_schedule(test::kKfacSchedule, "kfac"); }});
  all.push_back(
      {"written_partial_kfac", [] { return schedule::parse_schedule(test::kPartialKfacSchedule, "kfac"); }});
  all.push_back({"written_shampoo", [] { return schedule::parse_schedule(kShampoo, "shampoo"); }});
  return all;
}

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

/// A refused schedule may read a value while another thread still makes it. That is one of the ways in which
/// it is wrong, and ThreadSanitizer would say so; there only what is accepted runs, which must be clean.
#if defined(__SANITIZE_THREAD__)
constexpr bool kRunsRefused = false;
#else
constexpr bool kRunsRefused = true;
#endif

/// Damages a schedule many times: each damage is either refused, or harmless with and without buffers. One of
/// `run_one_refused_of` refused schedules runs, too.
Tally damage(const Schedule& original, std::uint64_t seed, std::size_t num_mutants,
             std::size_t run_one_refused_of) {
  const ExecutorOptions patient{.hang_limit = std::chrono::seconds(20)};
  const ExecutorOptions unchecked{.checked = ExecutorOptions::Checked::No,
                                  .hang_limit = std::chrono::milliseconds(40)};
  std::mt19937_64 random(seed);
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

/// Fewer of schedules whose cycles are long, so that all take about the same time.
std::size_t num_damages_of_a_sample(const Schedule& schedule) {
  std::size_t num_actions = 0;
  for (const schedule::RankProgram& rank : schedule.ranks) {
    for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
      num_actions += rank.lane(static_cast<schedule::Lane>(lane)).actions().size();
    }
  }
  return std::clamp<std::size_t>(40'000 / num_actions, 20, 150);
}

class Mutations : public testing::TestWithParam<Original> {};

/// What is refused is seldom harmless.
TEST_P(Mutations, AreRefusedOrHarmless) {
  const Schedule original = GetParam().make();
  ASSERT_EQ(difference(original, {}, true), "");
  ASSERT_EQ(difference(original, {}, false), "");
  const Tally tally = damage(original, 2026, num_damages_of_a_sample(original), 20);
  RecordProperty("refused", static_cast<int>(tally.refused));
  RecordProperty("accepted", static_cast<int>(tally.accepted));
  RecordProperty("refused_run", static_cast<int>(tally.refused_run));
  RecordProperty("refused_but_right", static_cast<int>(tally.refused_but_right));
  EXPECT_GT(tally.refused, tally.accepted);
  if (kRunsRefused) {
    EXPECT_LE(tally.refused_but_right, 1 + tally.refused_run / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Mutations, testing::ValuesIn(originals()),
                         [](const auto& original) { return original.param.name; });

/// The long form: 10,000 damages of every original, in parts that can run at the same time.
class ManyMutations : public testing::TestWithParam<std::tuple<Original, std::uint64_t>> {};
constexpr std::uint64_t kNumParts = 20;

TEST_P(ManyMutations, DISABLED_SoakAreRefusedOrHarmless) {
  const auto& [original, part] = GetParam();
  const Tally tally = damage(original.make(), part, 10'000 / kNumParts, 100);
  RecordProperty("refused", static_cast<int>(tally.refused));
  RecordProperty("accepted", static_cast<int>(tally.accepted));
}

INSTANTIATE_TEST_SUITE_P(Of, ManyMutations,
                         testing::Combine(testing::ValuesIn(originals()),
                                          testing::Range(std::uint64_t{0}, kNumParts)),
                         [](const auto& part) {
                           return fmt::format("{}_{}", std::get<0>(part.param).name, std::get<1>(part.param));
                         });

}  // namespace
}  // namespace plenum::pipeline
