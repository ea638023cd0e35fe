// Every generator, mesh and filler computes what the serial loops compute.

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/preconditioning.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/toy_run.h"
#include "tests/support/blocking_communicator.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/fitted_options.h"
#include "tests/support/function_costs.h"

namespace plenum::pipeline {
namespace {

using schedule::Action;
using schedule::ActionType;
using schedule::Generator;
using schedule::generator_named;
using schedule::GeneratorOptions;
using schedule::Lane;
using schedule::Rank;
using schedule::Recomputation;
using schedule::Schedule;
using schedule::Sharding;
using test::fitted;

constexpr std::uint64_t kNumSteps = 4;

class Generators : public testing::TestWithParam<std::string> {
 protected:
  void expect_serial_results(const GeneratorOptions& options) {
    const Generator& generator = generator_named(GetParam());
    const Schedule schedule = generator.generate(fitted(generator, options));
    EXPECT_EQ(difference_from_serial(schedule, kNumSteps), "");
  }
};

TEST_P(Generators, ComputeWhatOneRankComputes) {
  for (const std::size_t depth : {2, 4}) {
    for (const std::size_t num_micro_batches : {4, 8}) {
      SCOPED_TRACE(testing::Message() << "depth " << depth << " micro-batches " << num_micro_batches);
      expect_serial_results({.depth = depth, .num_micro_batches = num_micro_batches, .stage_layers = {1}});
    }
  }
}

TEST_P(Generators, ReduceGradientsOverReplicasInBuckets) {
  for (const std::size_t num_replicas : {2, 3}) {
    for (const std::size_t num_buckets : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << "replicas " << num_replicas << " buckets " << num_buckets);
      expect_serial_results({.depth = 2,
                             .num_micro_batches = 4,
                             .num_replicas = num_replicas,
                             .stage_layers = {3},
                             .num_buckets = num_buckets});
    }
  }
}

TEST_P(Generators, ShardTheOptimizer) {
  expect_serial_results({.depth = 2,
                         .num_micro_batches = 2,
                         .num_replicas = 3,
                         .stage_layers = {3},
                         .num_buckets = 2,
                         .sharding = Sharding::Optimizer});
}

TEST_P(Generators, ShardGradients) {
  const Generator& generator = generator_named(GetParam());
  for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
    for (const std::size_t num_buckets : {1, 2, 3, 5}) {
      SCOPED_TRACE(testing::Message() << "buckets " << num_buckets);
      GeneratorOptions options = fitted(generator, {.num_micro_batches = 3,
                                                    .num_replicas = 3,
                                                    .stage_layers = {5},
                                                    .num_buckets = num_buckets,
                                                    .recomputation = recomputation,
                                                    .sharding = Sharding::Gradients,
                                                    .has_tied_parameters = true,
                                                    .has_tensor_norms = true});
      if (generator.num_stages(options) > 1) {
        test::expect_user_error([&] { generator.generate(options); }, "computes the whole model");
        continue;
      }
      EXPECT_EQ(difference_from_serial(generator.generate(options), kNumSteps), "");
    }
  }
}

TEST_P(Generators, ShardParameters) {
  const Generator& generator = generator_named(GetParam());
  for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
    for (const std::size_t num_buckets : {1, 2, 3, 4, 5, 7}) {
      SCOPED_TRACE(testing::Message() << "buckets " << num_buckets);
      const GeneratorOptions options = fitted(generator, {.num_micro_batches = 3,
                                                          .num_replicas = 3,
                                                          .stage_layers = {7},
                                                          .num_buckets = num_buckets,
                                                          .recomputation = recomputation,
                                                          .sharding = Sharding::Parameters,
                                                          .has_tied_parameters = num_buckets % 2 == 0,
                                                          .has_tensor_norms = true});
      if (generator.num_stages(options) > 1) {
        test::expect_user_error([&] { generator.generate(options); }, "computes the whole model");
      } else if (generator.name == "gpipe" || generator.splits_backward) {
        test::expect_user_error([&] { generator.generate(options); }, "right behind its forward");
      } else {
        EXPECT_EQ(difference_from_serial(generator.generate(options), kNumSteps), "");
      }
    }
  }
}

TEST_P(Generators, ScaleUpdatesByTheNormsOfWholeTensors) {
  for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
    for (const std::size_t num_replicas : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "replicas " << num_replicas);
      expect_serial_results({.depth = 2,
                             .num_micro_batches = 2,
                             .num_replicas = num_replicas,
                             .stage_layers = {3},
                             .num_buckets = 2,
                             .sharding = sharding,
                             .has_tied_parameters = true,
                             .has_tensor_norms = true});
    }
  }
}

TEST_P(Generators, Recompute) {
  expect_serial_results({.depth = 2,
                         .num_micro_batches = 4,
                         .num_replicas = 2,
                         .stage_layers = {2},
                         .num_buckets = 2,
                         .recomputation = Recomputation::Full});
}

TEST_P(Generators, KeepTiedParametersEqual) {
  for (const std::size_t num_replicas : {1, 2}) {
    for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
      SCOPED_TRACE(testing::Message() << "replicas " << num_replicas);
      expect_serial_results({.depth = 2,
                             .num_micro_batches = 2,
                             .num_replicas = num_replicas,
                             .stage_layers = {2},
                             .num_buckets = 2,
                             .sharding = sharding,
                             .has_tied_parameters = true});
    }
  }
}

TEST_P(Generators, ReduceTheHalvesOfATiedParameterByThemselves) {
  const Generator& generator = generator_named(GetParam());
  if (generator.is_pipeline()) return;
  for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
    for (const std::size_t num_replicas : {1, 3}) {
      for (const std::size_t num_buckets : {1, 2, 4}) {
        SCOPED_TRACE(testing::Message() << "replicas " << num_replicas << " buckets " << num_buckets);
        expect_serial_results({.num_micro_batches = 3,
                               .num_replicas = num_replicas,
                               .stage_layers = {4},
                               .num_buckets = num_buckets,
                               .sharding = sharding,
                               .has_tied_parameters = true,
                               .has_tied_halves = true,
                               .has_tensor_norms = num_buckets != 2});
      }
    }
  }
}

TEST_P(Generators, TakeUnequalStagesAndMicroBatches) {
  const Generator& generator = generator_named(GetParam());
  GeneratorOptions options = fitted(
      generator,
      {.depth = 2, .num_micro_batches = 4, .num_replicas = 2, .num_buckets = 2, .has_tied_parameters = true});
  for (std::size_t stage = 0; stage < generator.num_stages(options); ++stage) {
    options.stage_layers.push_back(static_cast<std::uint16_t>(1 + (stage * 2 + 1) % 3));
  }
  for (std::size_t i = 0; i < options.num_micro_batches * options.num_replicas; ++i) {
    options.micro_batch_sizes.push_back(static_cast<std::uint32_t>(1 + i * 3 % 5));
  }
  EXPECT_EQ(difference_from_serial(generator.generate(options), kNumSteps), "");
}

/// On an engine that has neither buffers nor tags.
std::string difference_when_blocking(const Schedule& schedule, std::uint64_t num_steps) {
  return difference_from_serial(schedule, num_steps, {.hang_limit = std::chrono::seconds(5)},
                                test::blocking_ranks(schedule.ranks.size()));
}

TEST_P(Generators, RunWithoutBuffersAndTags) {
  const Generator& generator = generator_named(GetParam());
  for (const std::size_t depth : {2, 4}) {
    for (const std::size_t num_replicas : {1, 2}) {
      for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
        SCOPED_TRACE(testing::Message() << "depth " << depth << " replicas " << num_replicas);
        const Schedule schedule = generator.generate(fitted(generator, {.depth = depth,
                                                                        .num_micro_batches = 8,
                                                                        .num_replicas = num_replicas,
                                                                        .stage_layers = {2},
                                                                        .num_buckets = 2,
                                                                        .recomputation = recomputation,
                                                                        .has_tied_parameters = true}));
        EXPECT_EQ(difference_when_blocking(schedule, kNumSteps), "");
      }
    }
  }
}

class FilledGenerators : public Generators {
 protected:
  /// Long enough for every action of the cycle to run with inverses that exist.
  void expect_serial_results(const schedule::Filler& filler, const GeneratorOptions& options,
                             const schedule::FillOptions& how = {}) {
    const Generator& generator = generator_named(GetParam());
    const schedule::FillResult filled = schedule::fill(generator.generate(fitted(generator, options)), filler,
                                                       test::FunctionCosts(&toy_seconds), how);
    EXPECT_EQ(filled.schedule.problem.has_partial_curvature, how.mode == schedule::FillMode::Fresh);
    const std::size_t num_steps = 2 * filled.schedule.num_steps() + filled.max_age;
    EXPECT_EQ(difference_from_serial(filled.schedule, num_steps), "");
    EXPECT_EQ(difference_when_blocking(filled.schedule, num_steps), "");
  }
};

TEST_P(FilledGenerators, GiveTheCurvatureOfKfac) {
  expect_serial_results(schedule::KfacFiller(2), {.depth = 4, .num_micro_batches = 4, .stage_layers = {2}});
}

TEST_P(FilledGenerators, RecomputeBesideKfac) {
  expect_serial_results(schedule::KfacFiller(2), {.depth = 4,
                                                  .num_micro_batches = 4,
                                                  .num_replicas = 2,
                                                  .stage_layers = {2},
                                                  .recomputation = Recomputation::Full});
}

TEST_P(FilledGenerators, DivideKfacOverReplicas) {
  expect_serial_results(schedule::KfacFiller(3), {.depth = 4,
                                                  .num_micro_batches = 4,
                                                  .num_replicas = 2,
                                                  .stage_layers = {2},
                                                  .num_buckets = 2,
                                                  .has_tied_parameters = true});
}

TEST_P(FilledGenerators, GiveTheCurvatureOfSomeMicroBatchesInTheirOwnStep) {
  for (const std::size_t num_replicas : {1, 2}) {
    for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
      SCOPED_TRACE(testing::Message() << "replicas " << num_replicas);
      GeneratorOptions options{.depth = 4,
                               .num_micro_batches = 4,
                               .num_replicas = num_replicas,
                               .stage_layers = {2},
                               .recomputation = recomputation,
                               .has_tied_parameters = true};
      for (std::size_t i = 0; i < 4 * num_replicas; ++i)
        options.micro_batch_sizes.push_back(static_cast<std::uint32_t>(1 + i * 3 % 5));
      expect_serial_results(schedule::KfacFiller(2), options,
                            {.mode = schedule::FillMode::Fresh, .margin = 0.1});
    }
  }
}

TEST_P(FilledGenerators, GiveTheRootsOfShampoo) {
  for (const std::size_t num_replicas : {1, 2}) {
    SCOPED_TRACE(num_replicas);
    expect_serial_results(schedule::ShampooFiller(2), {.depth = 4,
                                                       .num_micro_batches = 4,
                                                       .num_replicas = num_replicas,
                                                       .stage_layers = {2},
                                                       .has_tied_parameters = true});
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Generator& generator : schedule::all_generators()) names.emplace_back(generator.name);
  return names;
}

/// Those that leave bubbles.
std::vector<std::string> pipeline_names() {
  std::vector<std::string> names;
  for (const Generator& generator : schedule::all_generators()) {
    if (generator.is_pipeline()) names.emplace_back(generator.name);
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Generators, testing::ValuesIn(all_names()), test_name);
INSTANTIATE_TEST_SUITE_P(Pipelines, FilledGenerators, testing::ValuesIn(pipeline_names()), test_name);

}  // namespace
}  // namespace plenum::pipeline
