#include "plenum/model/bert.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/kernels/attention.h"
#include "plenum/tensor/cuda_device.h"

#include "tests/model/gradient_differences.h"
#include "tests/model/model_run.h"
#include "tests/ops/op_testing.h"
#include "tests/reference/bert.h"
#include "tests/support/test_sequences.h"

namespace plenum::model {
namespace {

using schedule::Recomputation;

using plenum::test::capacity_of;
using plenum::test::lay_out;
using plenum::test::random_sequences;

// Widths that are no multiples of a vector.
const describe::ModelConfig kConfig{.vocabulary = 31,
                                    .width = 20,
                                    .num_layers = 2,
                                    .num_heads = 2,
                                    .mlp_width = 28,
                                    .max_positions = 12,
                                    .hidden_dropout = 0.2,
                                    .attention_dropout = 0.1,
                                    .has_next_sentence = true};

const DropoutSource kDropout{.is_on = true, .key = base::RandomFunction(9, base::Purpose::Dropout, 2).key()};

TEST(Bert, AgreesWithTheReferenceWithDropout) {
  for (const std::int64_t row_length : {0, 12}) {
    const batch::MicroBatch batch = lay_out(random_sequences(4, 12, 31, 2), row_length);
    ModelRun run(kConfig, capacity_of(batch));
    fill_randomly(run);
    const reference::Bert reference(kConfig, run.table(), kDropout.key);
    const auto expected = reference.run({run.weights().begin(), run.weights().end()}, batch);
    const LossSums sums = run.forward(batch, kDropout);
    EXPECT_NEAR(sums.masked, expected.masked, ops::kFloat32Relative * expected.masked);
    EXPECT_NEAR(sums.next_sentence, expected.next_sentence, ops::kFloat32Relative * expected.next_sentence);
    ops::expect_near(run.kept().heads[0].logits_MW.span<float>(), expected.logits_MV, "logits");
  }
}

void expect_differences_of_the_reference(const batch::MicroBatch& batch) {
  const LossScale scale{.masked = 0.25F, .next_sentence = 0.5F};
  ModelRun run(kConfig, capacity_of(batch));
  fill_randomly(run);
  std::vector<double> flat(run.weights().begin(), run.weights().end());
  const reference::Bert reference(kConfig, run.table(), kDropout.key);
  const auto loss = [&] {
    const auto losses = reference.run(flat, batch);
    return 0.25 * losses.masked + 0.5 * losses.next_sentence;
  };

  constexpr float kBefore = 3;
  std::fill(run.gradients().begin(), run.gradients().end(), kBefore);
  run.forward(batch, kDropout);
  run.backward(batch, scale, kDropout);
  expect_differences(run, kBefore, flat, loss);
}

TEST(Bert, BackwardAddsTheReferencesDifferencesToGradients) {
  expect_differences_of_the_reference(lay_out(random_sequences(4, 12, 31, 2), 12));
}

TEST(Bert, ARowThatBothHeadsReadHasBothGradients) {
  batch::MicroBatch batch = lay_out(random_sequences(3, 12, 31, 2));
  batch.objectives[0].rows = batch.starts;
  batch.objectives[0].labels.assign(batch.starts.size(), 7);
  expect_differences_of_the_reference(batch);
}

TEST(Bert, TrainsWithMoreRowsReadThanThereAre) {
  // Every token is masked, and first tokens are read twice.
  batch::MicroBatch batch = lay_out(random_sequences(3, 12, 31, 2));
  batch.objectives[0].rows.resize(static_cast<std::size_t>(batch.num_rows));
  std::iota(batch.objectives[0].rows.begin(), batch.objectives[0].rows.end(), 0);
  batch.objectives[0].labels.assign(batch.objectives[0].rows.size(), 5);
  expect_differences_of_the_reference(batch);
}

TEST(Bert, DoesNothingForAnEmptyMicroBatch) {
  const batch::MicroBatch batch = lay_out(random_sequences(2, 12, 31, 2));
  ModelRun run(kConfig, capacity_of(batch));
  fill_randomly(run);
  const batch::MicroBatch empty = lay_out({});
  EXPECT_EQ(run.forward(empty, kDropout).masked, 0);
  run.backward(empty, {}, kDropout);
  for (const float value : run.gradients()) ASSERT_EQ(value, 0);
}

TEST(Bert, BackwardOverwritesWhateverGradientsWere) {
  const batch::MicroBatch full = lay_out(random_sequences(4, 12, 31, 2));
  batch::MicroBatch unmasked = full;
  unmasked.objectives[0].rows.clear();
  unmasked.objectives[0].labels.clear();
  batch::MicroBatch unlabelled = full;
  unlabelled.objectives[1] = {};
  batch::MicroBatch unread = unmasked;
  unread.objectives[1] = {};
  for (const batch::MicroBatch& batch : {full, unmasked, unlabelled, unread, lay_out({})}) {
    ModelRun added(kConfig, capacity_of(full));
    ModelRun overwritten(kConfig, capacity_of(full));
    for (const describe::Parameter& parameter : added.table().parameters()) {
      std::ranges::fill(overwritten.gradient(parameter), NAN);
    }
    for (ModelRun* run : {&added, &overwritten}) {
      fill_randomly(*run);
      run->forward(batch, kDropout);
      run->backward(batch, {}, kDropout, run == &added ? kernels::Accumulate::Yes : kernels::Accumulate::No);
    }
    for (const describe::Parameter& parameter : added.table().parameters()) {
      EXPECT_TRUE(std::ranges::equal(overwritten.gradient(parameter), added.gradient(parameter)))
          << parameter.name << " of " << batch.objectives[0].rows.size() << " masked tokens and "
          << batch.objectives[1].labels.size() << " labels";
    }
  }
}

/// The gradients of two micro-batches, the first of which overwrites: by backward, or by its halves.
std::vector<float> gradients_of_two(const describe::ModelConfig& config, Recomputation recompute,
                                    BackwardForm form, const std::array<batch::MicroBatch, 2>& batches,
                                    const batch::Capacity& capacity) {
  ModelRun run(config, capacity, recompute, 1, nullptr, form);
  fill_randomly(run);
  for (const describe::Parameter& parameter : run.table().parameters()) {
    std::ranges::fill(run.gradient(parameter), NAN);
  }
  for (const batch::MicroBatch& batch : batches) {
    const bool is_first = &batch == &batches.front();
    run.forward(batch, kDropout);
    run.backward(batch, {.masked = 0.25, .next_sentence = 0.5}, kDropout,
                 is_first ? kernels::Accumulate::No : kernels::Accumulate::Yes);
  }
  return {run.gradients().begin(), run.gradients().end()};
}

TEST(Bert, InputAndWeightGradientMakeABackward) {
  // The products are the same ones, of the same numbers: so are the bytes.
  const batch::MicroBatch first = lay_out(random_sequences(4, 12, 31, 2));
  const batch::MicroBatch second = lay_out(random_sequences(3, 12, 31, 5));
  batch::MicroBatch unread = first;
  for (batch::ObjectiveRows& objective : unread.objectives) objective = {};
  for (const double dropout : {0.2, 0.0}) {
    describe::ModelConfig config = kConfig;
    config.hidden_dropout = dropout;
    for (const std::array<batch::MicroBatch, 2>& batches :
         {std::array{first, second}, {lay_out({}), second}, {first, lay_out({})}, {unread, second}}) {
      for (const Recomputation recompute : {Recomputation::None, Recomputation::Mlp, Recomputation::Full}) {
        const auto gradients = [&](BackwardForm form) {
          return gradients_of_two(config, recompute, form, batches, capacity_of(first));
        };
        const std::vector<float> whole = gradients(BackwardForm::Whole);
        EXPECT_EQ(whole, gradients(BackwardForm::WholeWithErrors));
        EXPECT_EQ(whole, gradients(BackwardForm::LayerHalves));
        if (recompute == Recomputation::None) {
          EXPECT_EQ(whole, gradients(BackwardForm::Halves));
        }
      }
    }
  }
}

TEST(Bert, ErrorsTakeMemoryOnlyWhereTheyAreKept) {
  const batch::Capacity capacity{.rows = 512, .sequences = 4, .labels = {60, 4}, .max_length = 128};
  const auto bytes_of = [&](bool keeps_errors) {
    tensor::MemoryPlan plan(tensor::Device::Cpu);
    const describe::ModelDescription model = describe::describe_bert(describe::preset("bert-mini"));
    memory::plan_training_memory(model, capacity, of_whole_model(model, {.keeps_errors = keeps_errors}, 3),
                                 plan);
    return plan.layout().num_bytes();
  };
  // dqkv of all rows; ds1, du and ds2 of all rows, and in the last of the 4 layers of the 64 that heads read.
  constexpr std::size_t kBehind = 256 + 1024 + 256;
  EXPECT_EQ(bytes_of(true) - bytes_of(false), 3 * 4 * (4 * 512 * 3 * 256 + (3 * 512 + 64) * kBehind));
}

TEST(Bert, ReadsNoLabelsWithoutANextSentenceHead) {
  describe::ModelConfig config = kConfig;
  config.has_next_sentence = false;
  const batch::MicroBatch labelled = lay_out(random_sequences(4, 12, 31, 2));
  batch::MicroBatch unlabelled = labelled;
  unlabelled.objectives[1] = {};
  ModelRun actual(config, capacity_of(labelled));
  ModelRun expected(config, capacity_of(labelled));
  const auto train_on = [](ModelRun& run, const batch::MicroBatch& batch) {
    fill_randomly(run);
    const LossSums sums = run.forward(batch, kDropout);
    run.backward(batch, {}, kDropout);
    return sums;
  };
  const LossSums sums = train_on(actual, labelled);
  EXPECT_GT(sums.masked, 0);
  EXPECT_EQ(sums.masked, train_on(expected, unlabelled).masked);
  EXPECT_EQ(sums.next_sentence, 0);
  EXPECT_TRUE(std::ranges::equal(actual.gradients(), expected.gradients()));
}

TEST(Bert, RefusesAMicroBatchThatIsLargerThanItsMemory) {
  const auto sequences = random_sequences(3, 12, 31, 2);
  ModelRun run(kConfig, capacity_of(lay_out(std::span(sequences).first(2))));
  EXPECT_THROW(run.forward(lay_out(sequences)), base::InternalError);
}

TEST(Bert, RefusesASequenceThatIsLongerThanItsMemory) {
  describe::ModelConfig config = kConfig;
  config.max_positions = 64;
  const batch::MicroBatch batch = lay_out(random_sequences(1, 64, 31, 2));
  batch::Capacity capacity = capacity_of(batch);
  capacity.max_length = 16;
  ModelRun run(config, capacity);
  EXPECT_THROW(run.forward(batch), base::InternalError);
}

/// What is planned to be kept of a micro-batch.
std::size_t kept_bytes(const describe::ModelConfig& config, const batch::Capacity& capacity,
                       Recomputation recompute, tensor::Device device) {
  tensor::MemoryPlan plan(device);
  const describe::ModelDescription model = describe::describe_bert(config);
  memory::plan_training_memory(model, capacity, of_whole_model(model, {.recompute = recompute}), plan);
  for (const tensor::MemoryLayout::Line& line : plan.layout().lines()) {
    if (line.purpose == "activations") return line.bytes;
  }
  return 0;
}

TEST(Bert, RecomputationKeepsLess) {
  const batch::Capacity capacity{.rows = 512, .sequences = 4, .labels = {60, 4}, .max_length = 128};
  const auto bytes_of = [&](Recomputation recompute) {
    return kept_bytes(describe::preset("bert-mini"), capacity, recompute, tensor::Device::Cpu);
  };
  // bert-mini: 4 layers, D = 256, H = 4, F = 1024, and R = 64 rows that heads read; what docs/math/bert.md
  // says, and around the layers the embedding's sum with its two moments, the running gradient and the last
  // output.
  constexpr std::size_t kLayer = 8 * 256 + 4 + 4;
  constexpr std::size_t kLastBeforeRead = 5 * 256 + 4;
  constexpr std::size_t kLastRead = 4 * 256 + 4;
  const auto bytes = [](std::size_t of_row, std::size_t of_read_row) {
    const std::size_t around = 2 * 256 + 2;
    return 4 * (512 * (of_row + around) + 64 * (of_read_row + 256));
  };
  EXPECT_EQ(bytes_of(Recomputation::None), bytes(3 * (kLayer + 1024) + kLastBeforeRead, kLastRead + 1024));
  EXPECT_EQ(bytes_of(Recomputation::Mlp), bytes(3 * kLayer + kLastBeforeRead, kLastRead));
  EXPECT_EQ(bytes_of(Recomputation::Full), bytes(4 * 256, 0));
}

TEST(Bert, ARecomputedLayerTakesNoMoreThanItsGradients) {
  // What passes are sharing: with and without recomputation the gradients of a layer, a recomputed layer, and
  // of its MLP one matrix more, in whose place there are gradients otherwise.
  const batch::Capacity capacity{.rows = 512, .sequences = 4, .labels = {60, 4}, .max_length = 128};
  const auto bytes_of = [&](Recomputation recompute) {
    tensor::MemoryPlan plan(tensor::Device::Cpu);
    const describe::ModelDescription model = describe::describe_bert(describe::preset("bert-mini"));
    memory::plan_training_memory(model, capacity, of_whole_model(model, {.recompute = recompute}), plan);
    return plan.layout().lines().front().bytes;
  };
  const std::size_t gradients = bytes_of(Recomputation::None);
  constexpr std::size_t kMlp = 4 * 512 * 1024;
  constexpr std::size_t kLayer = 4 * (512 * (7 * 256 + 4 + 4) + 64 * 256);
  EXPECT_EQ(bytes_of(Recomputation::Mlp), gradients + kMlp);
  EXPECT_EQ(bytes_of(Recomputation::Full), gradients + kMlp + kLayer);
}

TEST(Bert, RecomputationKeepsLessOnAGpu) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  const batch::Capacity capacity{.rows = 512, .sequences = 128, .labels = {128, 128}, .max_length = 128};
  describe::ModelConfig config = describe::preset("bert-mini");
  const auto bytes_of = [&](Recomputation recompute, double attention_dropout) {
    config.attention_dropout = attention_dropout;
    return kept_bytes(config, capacity, recompute, tensor::Device::Cuda);
  };
  // bert-mini as above, with R = 256. Numbers have two bytes, but those of softmax and of norms, which have
  // four. Two matrices are kept of an MLP, and of attention's dropout what it keeps, in layers of all rows.
  constexpr std::size_t kLayer = 2 * 8 * 256 + 4 * (4 + 4);
  constexpr std::size_t kLastBeforeRead = 2 * 5 * 256 + 4 * 4;
  constexpr std::size_t kLastRead = 2 * 4 * 256 + 4 * 4;
  constexpr std::size_t kMlp = 2 * 2 * 1024;
  const auto bytes = [](std::size_t of_row, std::size_t of_read_row) {
    const std::size_t around = 2 * 2 * 256 + 4 * 2;
    return 512 * (of_row + around) + 256 * (of_read_row + 2 * 256);
  };
  const std::size_t keep_bytes = kernels::attention_keep_bytes(
      tensor::Device::Cuda, {.rows = 512, .max_length = 128, .heads = 4, .head_width = 64});
  EXPECT_GE(keep_bytes, 4U * 512 * 128 / 8);
  const std::size_t all = bytes(3 * (kLayer + kMlp) + kLastBeforeRead, kLastRead + kMlp);
  EXPECT_EQ(bytes_of(Recomputation::None, 0), all);
  EXPECT_EQ(bytes_of(Recomputation::None, 0.1), all + 4 * keep_bytes);
  for (const double dropout : {0.0, 0.1}) {
    EXPECT_EQ(bytes_of(Recomputation::Mlp, dropout), bytes(3 * kLayer + kLastBeforeRead, kLastRead));
    EXPECT_EQ(bytes_of(Recomputation::Full, dropout), bytes(2 * 4 * 256, 0));
  }
}

}  // namespace
}  // namespace plenum::model
