#include "plenum/pipeline/bert_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "plenum/batch/step_batch.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/pipeline/bert_run.h"
#include "tests/support/expect_user_error.h"

namespace plenum::pipeline {
namespace {

using plenum::test::capacity_of;
using plenum::test::random_sequences;
using plenum::test::TestSequence;
using schedule::Recomputation;

// "The same to rounding", as the design defines it.
constexpr double kGradientOfStepOne = 1e-5;
constexpr double kLossesOfTwentySteps = 1e-4;

const std::vector<TestSequence>& sequences() {
  static const std::vector<TestSequence> all = random_sequences(11, 24, 97, 5);
  return all;
}

/// One way to cut the same sequences up.
struct Arrangement {
  std::size_t num_ranks = 1;
  std::size_t num_micro_batches = 1;  ///< of each rank
  std::int64_t row_length = 0;
  bool is_reversed = false;
  Recomputation recompute = Recomputation::None;
  std::size_t num_threads = 1;
  WordTable words = WordTable::InHalves;

  batch::StepBatch batch(std::uint64_t step, std::vector<TestSequence> from = sequences()) const {
    if (is_reversed) std::reverse(from.begin(), from.end());
    return deal_out(step, from, num_ranks * num_micro_batches, row_length);
  }
  schedule::Schedule schedule(const describe::ModelConfig& model) const {
    return bert_schedule(model, num_ranks, num_micro_batches, recompute, schedule::Sharding::None,
                         optim::OptimizerKind::AdamW, words);
  }
  BertRun run(const describe::ModelConfig& model) const { return BertRun(schedule(model), options(model)); }
  BertProgramOptions options(const describe::ModelConfig& model) const {
    return {.model = model,
            .capacity = capacity_of(batch(0).micro_batches),
            .seed = 17,
            .num_threads = num_threads};
  }
};

std::vector<StepOutcome> train(BertRun& run, const Arrangement& arrangement, std::uint64_t num_steps) {
  std::vector<StepOutcome> outcomes;
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    outcomes.push_back(run.step(arrangement.batch(step)));
  }
  return outcomes;
}

void expect_same_gradients(BertRun& actual, BertRun& expected) {
  const std::vector<float> a = actual.gradients();
  const std::vector<float> b = expected.gradients();
  for (const describe::Parameter& parameter : expected.program().parameters().parameters()) {
    double largest = 0;
    double error = 0;
    for (auto i = static_cast<std::size_t>(parameter.begin); i < static_cast<std::size_t>(parameter.end());
         ++i) {
      largest = std::max(largest, std::abs(double{b[i]}));
      error = std::max(error, std::abs(double{a[i]} - double{b[i]}));
    }
    // A key's bias shifts all scores of a query alike, which softmax takes back.
    EXPECT_EQ(largest == 0, parameter.name.ends_with("key.bias")) << parameter.name;
    EXPECT_LE(error, kGradientOfStepOne * largest) << parameter.name;
  }
}

/// The gradients of one step, then the losses of twenty.
void expect_same_training(const Arrangement& arrangement, const describe::ModelConfig& model) {
  BertRun expected = Arrangement{}.run(model);
  BertRun actual = arrangement.run(model);
  std::vector<StepOutcome> expected_outcomes = train(expected, {}, 1);
  std::vector<StepOutcome> outcomes = train(actual, arrangement, 1);
  expect_same_gradients(actual, expected);
  for (std::uint64_t step = 1; step < 20; ++step) {
    expected_outcomes.push_back(expected.step(Arrangement{}.batch(step)));
    outcomes.push_back(actual.step(arrangement.batch(step)));
  }
  for (std::size_t step = 0; step < 20; ++step) {
    const StepOutcome& reference = expected_outcomes[step];
    EXPECT_NEAR(outcomes[step].losses[0], reference.losses[0], kLossesOfTwentySteps * reference.losses[0])
        << "step " << step;
    EXPECT_NEAR(outcomes[step].losses[1], reference.losses[1], kLossesOfTwentySteps * reference.losses[1])
        << "step " << step;
  }
  EXPECT_LT(outcomes.back().loss(), outcomes.front().loss());
}

void expect_same_bytes(const Arrangement& a, const Arrangement& b) {
  const describe::ModelConfig model = small_model(0.1);
  BertRun first = a.run(model);
  BertRun second = b.run(model);
  train(first, a, 3);
  train(second, b, 3);
  EXPECT_EQ(first.weights(), second.weights());
  EXPECT_EQ(first.gradients(), second.gradients());
}

TEST(BertProgram, TrainsTheSameOnTwoRanks) {
  expect_same_training({.num_ranks = 2}, small_model());
}

TEST(BertProgram, TrainsTheSameWhenGradientsAccumulate) {
  expect_same_training({.num_micro_batches = 3}, small_model());
}

TEST(BertProgram, TrainsTheSameWithDropoutHoweverSequencesAreArranged) {
  const describe::ModelConfig model = small_model(0.1);
  expect_same_training({.num_ranks = 2}, model);
  expect_same_training({.num_micro_batches = 2, .is_reversed = true}, model);
  expect_same_training({.num_ranks = 2, .num_micro_batches = 2, .row_length = 24}, model);
}

TEST(BertProgram, SumsTheWordTablesGradientInHalvesToRounding) {
  const describe::ModelConfig model = small_model(0.1);
  for (const Arrangement& in_halves :
       {Arrangement{.num_ranks = 2}, Arrangement{.num_ranks = 3, .num_micro_batches = 2},
        Arrangement{.num_ranks = 2, .num_micro_batches = 2, .recompute = Recomputation::Full},
        Arrangement{.num_ranks = 2, .num_micro_batches = 20}}) {  // some without sequences
    Arrangement whole = in_halves;
    whole.words = WordTable::Whole;
    BertRun expected = whole.run(model);
    BertRun actual = in_halves.run(model);
    for (std::uint64_t step = 0; step < 2; ++step) {
      // Words that the first step reads and the second does not.
      const std::vector<TestSequence> some(sequences().begin() + static_cast<std::ptrdiff_t>(6 * step),
                                           sequences().end());
      const double norm = expected.step(whole.batch(step, some), 0).gradient_norm;
      EXPECT_NEAR(actual.step(in_halves.batch(step, some), 0).gradient_norm, norm, kGradientOfStepOne * norm);
      expect_same_gradients(actual, expected);
    }
    for (std::size_t rank = 1; rank < in_halves.num_ranks; ++rank) {
      EXPECT_EQ(actual.gradients(rank), actual.gradients(0));
    }
  }
}

TEST(BertProgram, HasRoomForTheWordsOfAStepWhereTheTableIsSummedInHalves) {
  describe::ModelConfig model = small_model();
  const auto gradient_bytes = [&](const Arrangement& arrangement) {
    const tensor::MemoryLayout planned =
        BertProgram::plan_memory(arrangement.schedule(model), {}, arrangement.options(model));
    const auto found =
        std::ranges::find(planned.lines(), std::string("gradients"), &tensor::MemoryLayout::Line::purpose);
    return static_cast<std::int64_t>(found->bytes);
  };
  const auto room = [&](const Arrangement& arrangement) {
    Arrangement whole = arrangement;
    whole.words = WordTable::Whole;
    return gradient_bytes(arrangement) - gradient_bytes(whole);
  };
  // All words at most, or as many as the step has tokens.
  const Arrangement two{.num_ranks = 2};
  const auto rounded = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
  EXPECT_EQ(room(two), rounded(97 * 32 * 4));
  model.vocabulary = 100'000;
  EXPECT_EQ(room(two), rounded(2 * two.options(model).capacity.rows * 32 * 4));
  EXPECT_EQ(room({}), 0);
}

TEST(BertProgram, DropoutChangesWithTheEpochAndTheSeed) {
  const describe::ModelConfig model = small_model(0.1);
  const Arrangement arrangement;
  BertRun run = arrangement.run(model);
  const double loss = run.step(arrangement.batch(0), 0).loss();
  batch::StepBatch other_epoch = arrangement.batch(1);
  ++other_epoch.epoch;
  EXPECT_NE(run.step(other_epoch, 0).loss(), loss);
  EXPECT_EQ(run.step(arrangement.batch(2), 0).loss(), loss);
  BertProgramOptions options = arrangement.options(model);
  ++options.seed;
  BertRun other_seed(bert_schedule(model, 1, 1), options);
  EXPECT_NE(other_seed.step(arrangement.batch(0), 0).loss(), loss);
}

TEST(BertProgram, RecomputationGivesTheSameBytes) {
  for (const Recomputation recompute : {Recomputation::Mlp, Recomputation::Full}) {
    expect_same_bytes({.num_micro_batches = 2, .recompute = recompute}, {.num_micro_batches = 2});
    expect_same_bytes({.num_ranks = 2, .row_length = 24, .recompute = recompute},
                      {.num_ranks = 2, .row_length = 24});
  }
}

TEST(BertProgram, ThreadsDoNotChangeABit) {
  expect_same_bytes({.num_micro_batches = 2, .num_threads = 3}, {.num_micro_batches = 2});
}

TEST(BertProgram, GivesTheSameBytesTwiceAndOnEveryRank) {
  const Arrangement arrangement{.num_ranks = 2, .num_micro_batches = 2};
  expect_same_bytes(arrangement, arrangement);
  BertRun run = arrangement.run(small_model(0.1));
  train(run, arrangement, 3);
  EXPECT_EQ(run.weights(0), run.weights(1));
  EXPECT_EQ(run.outcome(2, 0).loss(), run.outcome(2, 1).loss());
  EXPECT_EQ(run.outcome(2, 0).gradient_norm, run.outcome(2, 1).gradient_norm);
}

TEST(BertProgram, ReadsNoGradientOfTheStepBefore) {
  for (const Arrangement& arrangement :
       {Arrangement{}, Arrangement{.num_micro_batches = 3}, Arrangement{.num_ranks = 2},
        Arrangement{.num_ranks = 2, .num_micro_batches = 20}}) {  // some without sequences
    const describe::ModelConfig model = small_model(0.1);
    BertRun expected = arrangement.run(model);
    BertRun actual = arrangement.run(model);
    for (std::uint64_t step = 0; step < 3; ++step) {
      for (std::size_t rank = 0; rank < arrangement.num_ranks; ++rank) actual.spoil_gradients(rank);
      const StepOutcome outcome = actual.step(arrangement.batch(step));
      EXPECT_FALSE(outcome.is_skipped);
      EXPECT_EQ(outcome.loss(), expected.step(arrangement.batch(step)).loss());
    }
    EXPECT_EQ(actual.gradients(), expected.gradients());
    EXPECT_EQ(actual.weights(), expected.weights());
  }
}

TEST(BertProgram, TakesAFirstMicroBatchWithoutSequences) {
  const std::vector<TestSequence> one(sequences().begin(), sequences().begin() + 1);
  const Arrangement arrangement{.num_micro_batches = 3};
  batch::StepBatch batch = arrangement.batch(0, one);
  BertRun expected = arrangement.run(small_model());
  expected.step(batch);
  std::ranges::reverse(batch.micro_batches);
  BertRun actual = arrangement.run(small_model());
  actual.spoil_gradients();
  actual.step(batch);
  EXPECT_EQ(actual.gradients(), expected.gradients());
}

TEST(BertProgram, TakesARankWithoutSequences) {
  const std::vector<TestSequence> one(sequences().begin(), sequences().begin() + 1);
  const describe::ModelConfig model = small_model();
  BertRun expected = Arrangement{}.run(model);
  BertRun actual = Arrangement{.num_ranks = 2, .num_micro_batches = 2}.run(model);
  const double loss = expected.step(Arrangement{}.batch(0, one)).loss();
  EXPECT_DOUBLE_EQ(actual.step(Arrangement{.num_ranks = 2, .num_micro_batches = 2}.batch(0, one)).loss(),
                   loss);
  expect_same_gradients(actual, expected);
}

TEST(BertProgram, SkipsAStepThatIsNotFinite) {
  const Arrangement arrangement{.num_ranks = 2};
  BertRun run = arrangement.run(small_model());
  train(run, arrangement, 1);
  EXPECT_EQ(run.outcome(0, 1).num_updates, 1U);

  // Only one rank has it; all must come to the same end.
  const std::vector<float> sound = run.weights(1);
  run.program(1).buffers().weights_N.span<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> moments = run.second_moments(0);
  run.step(arrangement.batch(1));
  for (const std::size_t rank : {0, 1}) {
    EXPECT_TRUE(run.outcome(1, rank).is_skipped);
    EXPECT_EQ(run.outcome(1, rank).num_updates, 1U);
    EXPECT_EQ(run.second_moments(rank), moments);
  }
  EXPECT_EQ(run.weights(0), sound);

  run.program(1).buffers().weights_N.span<float>()[5] = sound[5];
  EXPECT_FALSE(run.step(arrangement.batch(2)).is_skipped);
  EXPECT_EQ(run.outcome(2, 0).num_updates, 2U);
  EXPECT_NE(run.weights(0), sound);
}

TEST(BertProgram, TakesThePlannedMemory) {
  const describe::ModelConfig model = small_model();
  std::vector<std::size_t> bytes;
  for (const Recomputation recompute : {Recomputation::None, Recomputation::Mlp, Recomputation::Full}) {
    const Arrangement arrangement{.num_micro_batches = 4, .recompute = recompute};
    BertRun run = arrangement.run(model);
    const tensor::MemoryLayout planned =
        BertProgram::plan_memory(arrangement.schedule(model), {}, arrangement.options(model));
    EXPECT_EQ(run.program().memory().num_bytes(), planned.num_bytes());
    std::vector<std::string> purposes;
    for (const tensor::MemoryLayout::Line& line : planned.lines()) purposes.push_back(line.purpose);
    std::sort(purposes.begin(), purposes.end());
    EXPECT_EQ(purposes, (std::vector<std::string>{"activations", "gradients", "head", "optimizer state",
                                                  "parameters", "scratch", "transients"}));
    bytes.push_back(planned.num_bytes());
  }
  EXPECT_GT(bytes[0], bytes[1]);
  EXPECT_GT(bytes[1], bytes[2]);
}

TEST(BertProgram, RefusesSchedulesThatItCannotRun) {
  const describe::ModelConfig model = small_model();
  const BertProgramOptions options = Arrangement{}.options(model);
  const auto refused = [&](const schedule::Schedule& schedule, const std::string& why) {
    plenum::test::expect_user_error([&] { BertProgram::plan_memory(schedule, {}, options); }, why);
  };
  refused(schedule::generator_named("single").generate({.stage_layers = {2}}), "model's layers");
  refused(schedule::parse_schedule("plenum-schedule 1\nlayers 3\nmicro-batches 1\nrecompute full\n"
                                   "rank 0 holds 0\n0 compute: F0.0 RC0.0 B0.0 NS0 U0\n0 data: N\n",
                                   "test"),
          "right before its backward");
  refused(schedule::generator_named("data-parallel")
              .generate({.num_replicas = 2, .stage_layers = {3}, .has_tied_parameters = true}),
          "reduce-tied");
  refused(schedule::generator_named("single").generate(
              {.stage_layers = {3}, .has_tied_parameters = true, .has_tied_halves = true}),
          "by several ranks on the CPU");
}

}  // namespace
}  // namespace plenum::pipeline
