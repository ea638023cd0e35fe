#include <limits>

#include <gtest/gtest.h>

#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/memory/micro_batch_layout.h"

#include "tests/pipeline/bert_run.h"
#include "tests/pipeline/step_result.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/on_gpu.h"
#include "tests/support/wide_heads.h"

namespace plenum::pipeline {
namespace {

using optim::OptimizerKind;
using plenum::test::capacity_of;
using plenum::test::random_sequences;
using plenum::test::TestSequence;
using plenum::test::wide_heads;
using schedule::Recomputation;
using tensor::Device;

const std::vector<TestSequence>& sequences() {
  static const std::vector<TestSequence> all = random_sequences(9, 200, 97, 5);
  return all;
}

const std::vector<TestSequence>& many_sequences() {
  static const std::vector<TestSequence> all = random_sequences(40, 200, 97, 6);
  return all;
}

/// One way to train on some sequences.
struct Arrangement {
  Device device = Device::Cuda;
  std::size_t num_micro_batches = 1;
  std::int64_t row_length = 0;
  Recomputation recompute = Recomputation::None;
  OptimizerKind optimizer = OptimizerKind::AdamW;
  std::span<const TestSequence> from = sequences();

  batch::StepBatch batch(std::uint64_t step) const {
    return deal_out(step, from, num_micro_batches, row_length);
  }
  BertProgramOptions options() const {
    return {.model = wide_heads(),
            .capacity = capacity_of(batch(0).micro_batches),
            .optimizer = {.kind = optimizer},
            .seed = 17,
            .device = device};
  }
  BertRun run() const { return {bert_schedule(wide_heads(), 1, num_micro_batches, recompute), options()}; }
};

StepResult first_step(const Arrangement& arrangement) {
  BertRun run = arrangement.run();
  return result_of(run, arrangement.batch(0));
}

/// Hopper has kernels of its own for the GELU of so many rows (plenum/kernels/cuda/product/mlp_gelu.cpp).
constexpr std::int64_t kRowsOfOwnGelu = 1024;

// On both sides of that. In the last layer it is the rows that heads read that count.
const Arrangement kOwnGeluInNoLayer{};
const Arrangement kOwnGeluBeforeTheLastLayer{.row_length = 224};
const Arrangement kOwnGeluInAllLayers{.from = many_sequences()};

using BertOnGpu = test::OnGpu<>;

TEST(BertArrangements, AreOnBothSidesOfHoppersOwnGelu) {
  const auto capacity = [](const Arrangement& arrangement) {
    return memory::computed_capacity(arrangement.options().capacity, Device::Cuda);
  };
  EXPECT_LT(capacity(kOwnGeluInNoLayer).rows, kRowsOfOwnGelu);
  EXPECT_GE(capacity(kOwnGeluBeforeTheLastLayer).rows, kRowsOfOwnGelu);
  EXPECT_LT(capacity(kOwnGeluBeforeTheLastLayer).read(), kRowsOfOwnGelu);
  EXPECT_GE(capacity(kOwnGeluInAllLayers).rows, kRowsOfOwnGelu);
  EXPECT_GE(capacity(kOwnGeluInAllLayers).read(), kRowsOfOwnGelu);
}

TEST_F(BertOnGpu, HasTheLossesAndGradientsOfTheCpu) {
  for (Arrangement arrangement : {kOwnGeluInNoLayer, kOwnGeluBeforeTheLastLayer, kOwnGeluInAllLayers,
                                  Arrangement{.num_micro_batches = 3}}) {
    SCOPED_TRACE(testing::Message() << arrangement.num_micro_batches << " micro-batches of up to "
                                    << arrangement.options().capacity.rows << " rows");
    const StepResult actual = first_step(arrangement);
    arrangement.device = Device::Cpu;
    expect_in_band(actual, first_step(arrangement), test::kBFloat16Gradient);
  }
}

TEST_F(BertOnGpu, HasTheSameGradientsHoweverSequencesAreArranged) {
  const StepResult expected = first_step({});
  const auto expect_same = [&](const Arrangement& arrangement) {
    expect_in_band(first_step(arrangement), expected, test::kBFloat16Rearranged);
  };
  expect_same({.num_micro_batches = 3});
  expect_same({.row_length = 224});
  expect_same({.num_micro_batches = 2, .row_length = 200});
}

TEST_F(BertOnGpu, HasTheSameGradientsWhatIsComputedAgain) {
  for (Arrangement arrangement : {kOwnGeluInNoLayer, kOwnGeluBeforeTheLastLayer, kOwnGeluInAllLayers}) {
    SCOPED_TRACE(arrangement.options().capacity.rows);
    const StepResult expected = first_step(arrangement);
    for (const Recomputation recompute : {Recomputation::Mlp, Recomputation::Full}) {
      arrangement.recompute = recompute;
      const StepResult actual = first_step(arrangement);
      EXPECT_EQ(actual.outcome.loss(), expected.outcome.loss());
      EXPECT_TRUE(are_same(actual.gradients, expected.gradients));
    }
  }
}

TEST_F(BertOnGpu, TakesMicroBatchesWithoutSequences) {
  const auto one = std::span(sequences()).first(1);
  const StepResult expected = first_step({.from = one});
  const StepResult actual = first_step({.num_micro_batches = 3, .from = one});
  EXPECT_EQ(actual.outcome.loss(), expected.outcome.loss());
  EXPECT_TRUE(are_same(actual.gradients, expected.gradients));
}

TEST_F(BertOnGpu, TakesAFirstMicroBatchWithoutSequences) {
  const Arrangement arrangement{.num_micro_batches = 3, .from = std::span(sequences()).first(1)};
  BertRun run = arrangement.run();
  batch::StepBatch batch = arrangement.batch(0);
  std::ranges::reverse(batch.micro_batches);
  run.spoil_gradients();
  run.step(batch);
  EXPECT_TRUE(run.gradients() == first_step(arrangement).gradients);
}

// More steps than a pass needs to be recorded, so that recordings of first and later micro-batches run.
TEST_F(BertOnGpu, ReadsNoGradientOfTheStepBefore) {
  for (const std::size_t num_micro_batches : {1, 3}) {
    const Arrangement arrangement{.num_micro_batches = num_micro_batches};
    BertRun expected = arrangement.run();
    BertRun actual = arrangement.run();
    for (std::uint64_t step = 0; step < 8; ++step) {
      actual.spoil_gradients();
      const StepOutcome outcome = actual.step(arrangement.batch(step));
      EXPECT_FALSE(outcome.is_skipped);
      EXPECT_EQ(outcome.loss(), expected.step(arrangement.batch(step)).loss());
    }
    EXPECT_TRUE(are_same(actual.gradients(), expected.gradients()));
    EXPECT_TRUE(are_same(actual.weights(), expected.weights()));
  }
}

TEST_F(BertOnGpu, GivesTheSameBytesTwice) {
  for (const OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
    const Arrangement arrangement{.num_micro_batches = 2, .optimizer = optimizer};
    BertRun first = arrangement.run();
    BertRun second = arrangement.run();
    for (std::uint64_t step = 0; step < 4; ++step) {
      EXPECT_EQ(first.step(arrangement.batch(step)).loss(), second.step(arrangement.batch(step)).loss());
    }
    EXPECT_TRUE(are_same(first.gradients(), second.gradients()));
    EXPECT_TRUE(are_same(first.weights(), second.weights()));
    EXPECT_TRUE(are_same(first.second_moments(), second.second_moments()));
  }
}

TEST_F(BertOnGpu, SkipsAStepThatIsNotFinite) {
  for (const OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
    const Arrangement arrangement{.optimizer = optimizer};
    BertRun run = arrangement.run();
    run.step(arrangement.batch(0));
    const std::vector<float> sound = run.weights();
    const std::vector<float> moments = run.second_moments();
    std::vector<float> broken = sound;
    broken[5] = std::numeric_limits<float>::quiet_NaN();
    run.set_weights(broken);
    run.program().begin(1);
    const StepOutcome skipped = run.step(arrangement.batch(1));
    EXPECT_TRUE(skipped.is_skipped);
    EXPECT_EQ(skipped.num_updates, 1U);
    EXPECT_TRUE(are_same(run.weights(), broken));
    EXPECT_TRUE(are_same(run.second_moments(), moments));

    // The next step is as if nothing had been.
    run.set_weights(sound);
    run.program().begin(1);
    EXPECT_FALSE(run.step(arrangement.batch(2)).is_skipped);
    BertRun untroubled = arrangement.run();
    untroubled.step(arrangement.batch(0));
    EXPECT_EQ(untroubled.step(arrangement.batch(1)).num_updates, 2U);
    EXPECT_TRUE(are_same(run.weights(), untroubled.weights()));
  }
}

TEST_F(BertOnGpu, TellsThatAStopWasAskedFor) {
  const Arrangement arrangement;
  BertRun run = arrangement.run();
  EXPECT_FALSE(run.step(arrangement.batch(0)).is_stop_asked);
  run.program().ask_to_stop();
  EXPECT_TRUE(run.step(arrangement.batch(1)).is_stop_asked);
}

TEST_F(BertOnGpu, TellsTheOutcomesOfTwoStepsUnderWay) {
  const Arrangement arrangement;
  BertRun awaited = arrangement.run();
  BertRun run = arrangement.run();
  std::vector<StepOutcome> expected;
  for (std::uint64_t step = 0; step < 5; ++step) expected.push_back(awaited.step(arrangement.batch(step)));
  for (std::uint64_t step = 0; step < 5; ++step) {
    run.ask_for(arrangement.batch(step));
    if (step == 0) continue;
    EXPECT_EQ(run.outcome(step - 1).loss(), expected[step - 1].loss());
    EXPECT_EQ(run.outcome(step - 1).num_updates, step);
  }
  EXPECT_EQ(run.outcome(4).loss(), expected[4].loss());
  EXPECT_TRUE(are_same(run.weights(), awaited.weights()));
}

TEST_F(BertOnGpu, TakesThePlannedMemoryWithinOnePercent) {
  // What the driver and the libraries load with the first step is theirs, not the run's.
  first_step({});
  const Arrangement arrangement;
  BertProgramOptions options = arrangement.options();
  options.capacity.rows = 1 << 18;
  const std::size_t free_before = tensor::cuda_free_bytes();
  BertRun run(bert_schedule(options.model, 1, 1), options);
  // What comes again is recorded, which takes memory too.
  for (std::uint64_t step = 0; step < 10; ++step) run.step(arrangement.batch(step));
  const auto taken = static_cast<double>(free_before - tensor::cuda_free_bytes());
  const auto planned = static_cast<double>(run.program().memory().num_bytes());
  EXPECT_GT(planned, 1e9);
  EXPECT_NEAR(taken, planned, 0.01 * planned);
  RecordProperty("planned_bytes", std::to_string(planned));
  RecordProperty("taken_bytes", std::to_string(taken));
}

TEST_F(BertOnGpu, ReadsNoMemoryThatAnIdDoesNotName) {
  const Arrangement arrangement;
  BertRun run = arrangement.run();
  const auto expect_refusal = [&](auto damage) {
    batch::StepBatch batch = arrangement.batch(0);
    damage(batch.micro_batches.front());
    EXPECT_THROW(run.step(batch), base::InternalError);
  };
  expect_refusal([](batch::MicroBatch& batch) { batch.ids[3] = 97; });
  expect_refusal([](batch::MicroBatch& batch) { batch.segments[3] = 2; });
  expect_refusal([](batch::MicroBatch& batch) { batch.positions[3] = 200; });
  expect_refusal([](batch::MicroBatch& batch) { batch.objectives[0].labels[3] = -1; });
  expect_refusal([](batch::MicroBatch& batch) { batch.objectives[1].labels[0] = 2; });
  expect_refusal([](batch::MicroBatch& batch) { batch.objectives[0].rows[3] = 1 << 20; });
  expect_refusal([](batch::MicroBatch& batch) { batch.starts.back() = 1 << 20; });
  expect_refusal([](batch::MicroBatch& batch) { batch.lengths.back() += 1; });
  expect_refusal([](batch::MicroBatch& batch) { batch.by_word.entries.back() = 97; });
  EXPECT_FALSE(run.step(arrangement.batch(0)).is_skipped);
}

TEST_F(BertOnGpu, RefusesHeadsThatItsAttentionDoesNotKnow) {
  const describe::ModelConfig model = small_model();
  const batch::StepBatch batch = deal_out(0, random_sequences(3, 24, 97, 5), 1);
  const BertProgramOptions options{
      .model = model, .capacity = capacity_of(batch.micro_batches), .device = Device::Cuda};
  test::expect_user_error([&] { BertProgram(bert_schedule(model, 1, 1), {}, options); }, "heads of width 64");
}

}  // namespace
}  // namespace plenum::pipeline
