// BERT in pipelines: every schedule trains what one rank trains.

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/usual_costs.h"

#include "tests/pipeline/staged_run.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/task_batches.h"
#include "tests/support/test_sequences.h"

namespace plenum::pipeline {
namespace {

using plenum::test::TestSequence;
using schedule::Recomputation;

// "The same to rounding", as the design defines it.
constexpr double kGradientOfStepOne = 1e-5;
constexpr double kLosses = 1e-4;
constexpr std::uint64_t kNumSteps = 4;

describe::ModelConfig model_of(std::int64_t num_layers, const std::optional<describe::Task>& task = {}) {
  return {.vocabulary = 61,
          .width = 16,
          .num_layers = num_layers,
          .num_heads = 2,
          .mlp_width = 24,
          .max_positions = 16,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1,
          .has_next_sentence = true,
          .task = task};
}

/// A way to train a model, of which one rank with one micro-batch is the plainest.
struct Pipeline {
  std::string generator = "single";
  std::size_t depth = 1;
  std::size_t num_replicas = 1;
  std::size_t num_micro_batches = 1;  ///< of a replica
  Recomputation recompute = Recomputation::None;
  std::size_t num_slices = 1;
  std::size_t num_buckets = 1;
  std::vector<std::uint16_t> stage_layers = {};  ///< as few as can be if not given
  optim::OptimizerKind optimizer = optim::OptimizerKind::AdamW;
  tensor::DType reduce_dtype = tensor::DType::Float32;
  std::size_t kfac_every = 0;               ///< K-FAC's factors are renewed every so many steps; 0: no K-FAC
  std::optional<describe::Task> task = {};  ///< in place of pre-training

  schedule::GeneratorOptions generator_options() const {
    schedule::GeneratorOptions options{.depth = depth,
                                       .num_micro_batches = num_micro_batches,
                                       .num_replicas = num_replicas,
                                       .stage_layers = stage_layers,
                                       .num_buckets = num_buckets,
                                       .recomputation = recompute,
                                       .has_tied_parameters = depth > 1 && !task,
                                       .has_tensor_norms = optimizer == optim::OptimizerKind::Lamb};
    const std::size_t num_stages = schedule::generator_named(generator).num_stages(options);
    if (options.stage_layers.empty()) options.stage_layers.assign(num_stages, 1);
    // Unequal, and enough of them for buckets.
    if (stage_layers.empty()) options.stage_layers.front() = options.stage_layers.back() = 2;
    return options;
  }
  schedule::Schedule schedule() const {
    schedule::Schedule plain = schedule::generator_named(generator).generate(generator_options());
    if (kfac_every == 0) return plain;
    return schedule::with_periodic_refresh(plain, schedule::KfacFiller(6), kfac_every);
  }
  std::int64_t num_layers() const {
    return static_cast<std::int64_t>(schedule::StageLayers(schedule().problem).total());
  }
  /// The same sequences for all; micro-batches differ in size, and with three or more the second is empty.
  batch::StepBatch batch(std::uint64_t step) const {
    const std::size_t of_example = task ? test::sequences_of_example(*task) : 1;
    const std::vector<TestSequence> sequences = test::random_sequences(13 * of_example, 16, 61, 40 + step);
    std::vector<std::vector<TestSequence>> parts(num_replicas * num_micro_batches);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const std::size_t example = i / of_example;
      std::size_t part = example * example % parts.size();
      if (part == 1 && parts.size() > 2) part = parts.size() - 1;
      parts[part].push_back(sequences[i]);
    }
    batch::StepBatch batch{.step = step, .epoch = 1, .global = {}, .global_rows = {}, .micro_batches = {}};
    for (const auto& part : parts) batch.global += batch.micro_batches.emplace_back(laid_out(part)).work();
    return batch;
  }
  batch::MicroBatch laid_out(const std::vector<TestSequence>& sequences) const {
    return task ? test::lay_out_task(*task, sequences) : test::lay_out(sequences);
  }
  BertProgramOptions options(std::int64_t layers) const {
    std::vector<batch::MicroBatch> all;
    for (std::uint64_t step = 0; step < kNumSteps; ++step) {
      for (batch::MicroBatch& micro_batch : batch(step).micro_batches) all.push_back(std::move(micro_batch));
    }
    return {.model = model_of(layers, task),
            .capacity = test::capacity_of(all),
            .optimizer = {.kind = kfac_every == 0 ? optimizer : optim::OptimizerKind::Kfac},
            .seed = 17,
            .reduce_dtype = reduce_dtype};
  }
  StagedRun run() const { return {schedule(), options(num_layers()), num_slices}; }
};

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> values(a.size());
  std::ranges::transform(a, b, values.begin(), std::minus<>());
  return values;
}

double norm_of(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  return std::sqrt(squares);
}

/// Without what has a gradient of nothing but rounding: before the logits of answers, the bias of the last
/// norm shifts all tokens alike, which softmax over them takes back.
NamedValues without_rounding(NamedValues values, const Pipeline& pipeline) {
  if (pipeline.task && pipeline.task->kind == describe::TaskKind::QuestionAnswering) {
    const std::int64_t last = pipeline.num_layers() - 1;
    EXPECT_EQ(values.erase(fmt::format("bert.encoder.layer.{}.output.LayerNorm.bias", last)), 1U);
  }
  return values;
}

void expect_same_gradients(const NamedValues& actual, const NamedValues& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, gradient] : expected) {
    EXPECT_LE(largest_of(difference(actual.at(name), gradient)), kGradientOfStepOne * largest_of(gradient))
        << name;
  }
}

/// Whether a tensor shifts all logits of a softmax over rows alike, and so has no gradient.
bool is_bias_of_groups(const std::string& name, const std::optional<describe::Task>& task) {
  const bool is_of_groups =
      task && describe::task_objective(*task).loss == describe::LossKind::GroupCrossEntropy;
  return is_of_groups && (name == "classifier.bias" || name == "qa_outputs.bias");
}

/// What both have moved by is the same but for what Adam makes of rounding.
void expect_same_weights(const NamedValues& actual, const NamedValues& expected, const NamedValues& first,
                         const std::optional<describe::Task>& task) {
  for (const auto& [name, weights] : expected) {
    const double moved = norm_of(difference(weights, first.at(name)));
    EXPECT_EQ(moved == 0, name.ends_with("key.bias") || is_bias_of_groups(name, task)) << name;
    EXPECT_LE(norm_of(difference(actual.at(name), weights)), 5e-3 * moved) << name;
  }
}

/// Whoever holds a value has the same bytes of it: replicas, Chimera's two pipelines, the tied word table.
void expect_equal_holders(StagedRun& run, std::size_t num_slices) {
  std::map<std::pair<std::string, std::size_t>, std::vector<float>> seen;
  for (std::size_t i = 0; i < run.num_programs(); ++i) {
    for (const describe::Parameter& parameter : run.program(i).parameters().parameters()) {
      const auto [found, is_new] = seen.try_emplace({parameter.name, parameter.slice ? i % num_slices : 0},
                                                    StagedRun::weights_of(run.program(i), parameter));
      EXPECT_EQ(found->second, StagedRun::weights_of(run.program(i), parameter))
          << parameter.name << " of program " << i;
    }
  }
}

void expect_trains_as_one_rank(const Pipeline& pipeline) {
  SCOPED_TRACE(testing::Message() << pipeline.generator << " of depth " << pipeline.depth << ", "
                                  << pipeline.num_replicas << " replicas");
  const Pipeline plainest{.stage_layers = {static_cast<std::uint16_t>(pipeline.num_layers())},
                          .optimizer = pipeline.optimizer,
                          .kfac_every = pipeline.kfac_every,
                          .task = pipeline.task};
  StagedRun expected = plainest.run();
  StagedRun actual = pipeline.run();
  for (std::uint64_t step = 0; step < kNumSteps; ++step) {
    const StepOutcome reference = expected.step(plainest.batch(step));
    const StepOutcome outcome = actual.step(pipeline.batch(step));
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(outcome.losses[i], reference.losses[i], kLosses * reference.losses[i]) << "step " << step;
    EXPECT_NEAR(outcome.gradient_norm, reference.gradient_norm, kLosses * reference.gradient_norm);
    EXPECT_EQ(outcome.num_updates, step + 1);
    if (step == 0 && pipeline.kfac_every == 0)
      expect_same_gradients(without_rounding(actual.gradients(), pipeline),
                            without_rounding(expected.gradients(), pipeline));
  }
  expect_same_weights(actual.weights(), without_rounding(expected.weights(), pipeline),
                      first_weights(model_of(pipeline.num_layers(), pipeline.task)), pipeline.task);
  expect_equal_holders(actual, pipeline.num_slices);
}

class EveryPipeline : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(BertStages, EveryPipeline, testing::ValuesIn([] {
                           std::vector<std::string> pipelines;
                           for (const schedule::Generator& generator : schedule::all_generators())
                             if (generator.is_pipeline()) pipelines.emplace_back(generator.name);
                           return pipelines;
                         }()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return c == '-'; });
                           return name;
                         });

TEST_P(EveryPipeline, TrainsWhatOneRankTrains) {
  expect_trains_as_one_rank({.generator = GetParam(), .depth = 2, .num_micro_batches = 4});
  expect_trains_as_one_rank({.generator = GetParam(), .depth = 4, .num_micro_batches = 4});
}

TEST_P(EveryPipeline, TrainsWhatOneRankTrainsInTwoReplicas) {
  expect_trains_as_one_rank(
      {.generator = GetParam(), .depth = 2, .num_replicas = 2, .num_micro_batches = 2, .num_buckets = 2});
}

TEST_P(EveryPipeline, GivesTheSameBytesTwice) {
  const Pipeline pipeline{.generator = GetParam(), .depth = 4, .num_micro_batches = 4};
  StagedRun first = pipeline.run();
  StagedRun second = pipeline.run();
  for (std::uint64_t step = 0; step < kNumSteps; ++step) {
    EXPECT_EQ(first.step(pipeline.batch(step)).losses, second.step(pipeline.batch(step)).losses);
  }
  EXPECT_EQ(first.weights(), second.weights());
}

TEST_P(EveryPipeline, GivesTheSameBytesWhenLayersAreRecomputed) {
  if (schedule::generator_named(GetParam()).splits_backward) GTEST_SKIP() << "recomputes in one piece";
  Pipeline pipeline{.generator = GetParam(), .depth = 4, .num_micro_batches = 4};
  StagedRun kept = pipeline.run();
  for (std::uint64_t step = 0; step < kNumSteps; ++step) kept.step(pipeline.batch(step));
  for (const Recomputation recompute : {Recomputation::Mlp, Recomputation::Full}) {
    pipeline.recompute = recompute;
    StagedRun recomputed = pipeline.run();
    for (std::uint64_t step = 0; step < kNumSteps; ++step) recomputed.step(pipeline.batch(step));
    EXPECT_EQ(recomputed.weights(), kept.weights());
  }
}

TEST_P(EveryPipeline, TakesThePlannedMemory) {
  const Pipeline pipeline{.generator = GetParam(), .depth = 4, .num_micro_batches = 4};
  const schedule::Schedule schedule = pipeline.schedule();
  const BertProgramOptions options = pipeline.options(pipeline.num_layers());
  StagedRun run = pipeline.run();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    EXPECT_EQ(run.program(rank).memory().num_bytes(),
              BertProgram::plan_memory(schedule, schedule::Rank::at(rank), options).num_bytes());
  }
}

TEST_P(EveryPipeline, TrainsByKfacWhatOneRankTrains) {
  for (const std::size_t every : {1, 2}) {
    expect_trains_as_one_rank(
        {.generator = GetParam(), .depth = 2, .num_micro_batches = 4, .kfac_every = every});
  }
  expect_trains_as_one_rank(
      {.generator = GetParam(), .depth = 2, .num_replicas = 2, .num_micro_batches = 2, .kfac_every = 2});
}

/// Such that a refresh takes the bubbles of several steps.
class CostsOfKfac final : public schedule::CostModel {
 public:
  explicit CostsOfKfac(const schedule::Problem& problem) : usual_(problem) {}

  double seconds(schedule::Rank rank, const schedule::Action& action) const override {
    using schedule::ActionType;
    if (action.type == ActionType::CurvatureA || action.type == ActionType::CurvatureB) return 0.06;
    return action.type == ActionType::Invert ? 0.4 / action.num_pieces : usual_.seconds(rank, action);
  }
  double latency_seconds(schedule::Rank from, schedule::Rank to) const override {
    return usual_.latency_seconds(from, to);
  }

 private:
  schedule::UsualCosts usual_;
};

TEST_P(EveryPipeline, TrainsByKfacInItsBubbles) {
  const Pipeline pipeline{.generator = GetParam(), .depth = 4, .num_micro_batches = 4};
  const schedule::Schedule plain = pipeline.schedule();
  const schedule::FillResult filled =
      schedule::fill(plain, schedule::KfacFiller(6), CostsOfKfac(plain.problem));
  schedule::require_checked(filled.schedule);
  EXPECT_GT(filled.max_age, 0U);
  BertProgramOptions options = pipeline.options(pipeline.num_layers());
  options.optimizer.kind = optim::OptimizerKind::Kfac;
  // The first steps have no factors yet: what they precondition is the plain gradient.
  StagedRun first(filled.schedule, options);
  StagedRun second(filled.schedule, options);
  const std::uint64_t num_steps = 2 * filled.schedule.num_steps() + 1;
  double loss = 0;
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    batch::StepBatch batch = pipeline.batch(step % kNumSteps);
    batch.step = step;
    const StepOutcome outcome = first.step(batch);
    EXPECT_EQ(second.step(batch).losses, outcome.losses) << "step " << step;
    EXPECT_FALSE(outcome.is_skipped) << "step " << step;
    if (step == 0) loss = outcome.loss();
    if (step + 1 == num_steps) EXPECT_LT(outcome.loss(), 1.2 * loss);
  }
  EXPECT_EQ(first.weights(), second.weights());
  expect_equal_holders(first, 1);
}

TEST(BertStages, TrainInTensorParallelSlices) {
  expect_trains_as_one_rank({.generator = "1f1b", .depth = 2, .num_micro_batches = 3, .num_slices = 2});
  expect_trains_as_one_rank({.generator = "chimera", .depth = 2, .num_micro_batches = 2, .num_slices = 2});
}

class EveryTaskInStages : public testing::TestWithParam<describe::Task> {};

INSTANTIATE_TEST_SUITE_P(BertStages, EveryTaskInStages, testing::ValuesIn(test::every_task()),
                         [](const auto& info) {
                           std::string name(describe::name_of(info.param.kind));
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(EveryTaskInStages, TrainsWhatOneRankTrains) {
  const auto expect_trains = [](Pipeline pipeline) {
    pipeline.task = GetParam();
    expect_trains_as_one_rank(pipeline);
  };
  expect_trains({.num_micro_batches = 3});
  expect_trains({.generator = "data-parallel", .num_replicas = 2, .num_micro_batches = 2});
  expect_trains({.num_micro_batches = 2, .num_slices = 2});
  expect_trains({.generator = "1f1b", .depth = 2, .num_micro_batches = 4});
  expect_trains({.generator = "chimera", .depth = 2, .num_micro_batches = 2, .num_slices = 2});
  expect_trains({.generator = "1f1b", .depth = 2, .num_micro_batches = 4, .kfac_every = 1});
}

TEST(BertStages, TrainByLamb) {
  expect_trains_as_one_rank(
      {.generator = "chimera", .depth = 4, .num_micro_batches = 4, .optimizer = optim::OptimizerKind::Lamb});
  expect_trains_as_one_rank({.generator = "interleaved",
                             .depth = 2,
                             .num_micro_batches = 2,
                             .num_slices = 2,
                             .optimizer = optim::OptimizerKind::Lamb});
}

TEST(BertStages, TrainWithGradientsThatTravelInHalfTheBytes) {
  const Pipeline exact{.generator = "1f1b", .depth = 2, .num_replicas = 2, .num_micro_batches = 2};
  Pipeline rounded = exact;
  rounded.reduce_dtype = tensor::DType::BFloat16;
  StagedRun expected = exact.run();
  StagedRun actual = rounded.run();
  const double loss = expected.step(exact.batch(0)).loss();
  EXPECT_EQ(actual.step(rounded.batch(0)).loss(), loss);
  for (const auto& [name, gradient] : expected.gradients()) {
    const double error = largest_of(difference(actual.gradients().at(name), gradient));
    EXPECT_LE(error, 0.02 * largest_of(gradient)) << name;
    // The word table is summed by itself, as it is.
    EXPECT_EQ(error == 0, name.ends_with("word_embeddings.weight") || name.ends_with("key.bias")) << name;
  }
  expect_equal_holders(actual, 1);
}

TEST(BertStages, HoldTheirOwnParametersAndMemory) {
  const Pipeline pipeline{.generator = "1f1b", .depth = 4, .num_micro_batches = 4};
  const Pipeline whole{.stage_layers = {static_cast<std::uint16_t>(pipeline.num_layers())}};
  StagedRun staged = pipeline.run();
  StagedRun single = whole.run();
  std::int64_t num_elements = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    num_elements += staged.program(rank).parameters().num_elements();
    EXPECT_LT(staged.program(rank).memory().num_bytes(), single.program(0).memory().num_bytes());
  }
  const describe::ParameterTable& table = single.program(0).parameters();
  const std::int64_t words = table.num_elements() - table.tied()->begin;
  EXPECT_EQ(num_elements, table.num_elements() + words);
  EXPECT_EQ(staged.program(1).parameters().tied(), nullptr);
}

TEST(BertStages, RefuseWhatTheyDoNotTrainWith) {
  const Pipeline pipeline{.generator = "1f1b", .depth = 2, .num_replicas = 2, .num_micro_batches = 2};
  const auto expect_refused = [&](const char* why, const schedule::GeneratorOptions& options) {
    const schedule::Schedule schedule = schedule::generator_named("1f1b").generate(options);
    test::expect_user_error(
        [&] { BertProgram::plan_memory(schedule, {}, pipeline.options(pipeline.num_layers())); }, why);
  };
  schedule::GeneratorOptions options = pipeline.generator_options();
  options.sharding = schedule::Sharding::Optimizer;
  expect_refused("several stages train without sharding", options);
  options = pipeline.generator_options();
  options.has_tied_parameters = false;
  expect_refused("the first and the last stage share the word table", options);
  Pipeline of_a_task = pipeline;
  of_a_task.task = {.kind = describe::TaskKind::Regression};
  test::expect_user_error([&] { StagedRun(pipeline.schedule(), of_a_task.options(4)); },
                          "a model of a task has no word table that stages share");
  options = pipeline.generator_options();
  options.stage_layers = {2, 3};
  expect_refused("the schedule must have the model's layers: 5 instead of 4", options);
}

TEST(BertStages, RefuseARankWithoutMicroBatchesForAStage) {
  const Pipeline pipeline{.generator = "chimera", .depth = 2, .num_micro_batches = 1};
  test::expect_user_error([&] { pipeline.run(); },
                          "give more --micro-batches: schedule chimera has none for");
}

TEST(BertStages, RefuseToRecomputeForHalfABackward) {
  Pipeline pipeline{.generator = "zb-h1", .depth = 2, .num_micro_batches = 2};
  pipeline.recompute = Recomputation::Mlp;
  test::expect_user_error([&] { pipeline.run(); },
                          "recompute a layer right before its backward, in one piece");
}

}  // namespace
}  // namespace plenum::pipeline
