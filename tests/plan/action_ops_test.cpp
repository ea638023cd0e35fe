#include "plenum/plan/action_ops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/kept_tensors.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/tensor/dtype.h"

#include "tests/plan/counted_encoder.h"
#include "tests/plan/op_sums.h"
#include "tests/support/modern_encoder.h"
#include "tests/support/task_batches.h"

namespace plenum::plan {
namespace {

using describe::ModelDescription;
using schedule::Recomputation;
using tensor::Device;
using test::bytes_of;
using test::flops_of;

ModelDescription small_bert(const std::optional<describe::Task>& task = {}) {
  return describe::describe_bert({.vocabulary = 48,
                                  .width = 8,
                                  .num_layers = 3,
                                  .num_heads = 2,
                                  .mlp_width = 24,
                                  .max_positions = 16,
                                  .has_next_sentence = true,
                                  .task = task});
}

ModelDescription small_modern_encoder() {
  return test::describe_modern_encoder(
      {.vocabulary = 40, .width = 8, .num_layers = 4, .num_heads = 2, .mlp_width = 12});
}

const std::vector<std::int32_t> kLengths = {3, 9, 5};

MicroBatchWork work_of(const std::vector<std::int32_t>& lengths, std::int64_t masked,
                       std::int64_t num_padding = 0) {
  MicroBatchWork micro_batch;
  for (const std::int32_t length : lengths) {
    micro_batch.work.tokens += length;
    micro_batch.work.squared_lengths += std::int64_t{length} * length;
    ++micro_batch.work.sequences;
  }
  micro_batch.work.labels = {masked, micro_batch.work.sequences};
  micro_batch.rows = micro_batch.work.tokens + num_padding;
  return micro_batch;
}

PartWork whole_pass(const ActionOps& ops, Pass pass, const ComputedWork& work,
                    Gradients gradients = Gradients::Overwritten) {
  PartWork all = ops.embedding(pass, work, gradients);
  const auto append = [&](const PartWork& part) {
    all.ops.insert(all.ops.end(), part.ops.begin(), part.ops.end());
    all.summed_bytes.insert(all.summed_bytes.end(), part.summed_bytes.begin(), part.summed_bytes.end());
    all.gathered_bytes.insert(all.gathered_bytes.end(), part.gathered_bytes.begin(),
                              part.gathered_bytes.end());
  };
  for (std::size_t layer = 0; layer < ops.model().layers.size(); ++layer)
    append(ops.layer(layer, pass, work, gradients));
  append(ops.heads(pass, work, gradients));
  return all;
}

double pass_flops(const ModelDescription& model, Pass pass, const MicroBatchWork& micro_batch,
                  Device device = Device::Cpu) {
  const ActionOps ops(model, device, Recomputation::None);
  return flops_of(whole_pass(ops, pass, computed_work(micro_batch, model, device)).ops);
}

std::vector<OpKind> kinds_of(const std::vector<Op>& ops) {
  std::vector<OpKind> kinds;
  for (const Op& op : ops) kinds.push_back(op.kind);
  return kinds;
}

TEST(ActionOps, HaveTheFlopsThatANaiveEncoderDoes) {
  const ModelDescription model = small_bert();
  test::CountedEncoder counted(model, kLengths, {4, 3});
  const MicroBatchWork work = work_of(kLengths, 4);
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Forward, work), counted.forward());
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Backward, work), counted.backward());
}

TEST(ActionOps, HaveTheFlopsOfTheHeadOfATask) {
  for (const describe::Task& task : test::every_task()) {
    const ModelDescription model = small_bert(task);
    test::CountedEncoder counted(model, kLengths, {6});
    const MicroBatchWork work = work_of(kLengths, 6);
    EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Forward, work), counted.forward());
    EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Backward, work), counted.backward());
  }
}

TEST(ActionOps, HaveTheFlopsThatTheDescriptionNeeds) {
  const ModelDescription model = describe::describe_bert(describe::preset("bert-base"));
  const MicroBatchWork work = work_of({128, 77, 512, 300}, 153);
  const double forward = describe::Flops(model).forward(work.work);
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Forward, work), forward);
  // Twice as many backward, and the scores once more.
  const double scores = 2.0 * 768 * static_cast<double>(work.work.squared_lengths) * 12;
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Backward, work), 2 * forward + scores);
  EXPECT_DOUBLE_EQ(
      pass_flops(model, Pass::InputGradient, work) + pass_flops(model, Pass::WeightGradient, work),
      2 * forward + scores);
}

TEST(ActionOps, FollowADescriptionThatIsNoBert) {
  const ModelDescription model = small_modern_encoder();
  // Sequences of one length, for which the pairs of a window follow from the mean.
  const std::vector<std::int32_t> lengths = {90, 90};
  test::CountedEncoder counted(model, lengths, {20});
  MicroBatchWork work = work_of(lengths, 20);
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Forward, work), counted.forward());
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Backward, work), counted.backward());
  const double of_description = describe::Flops(model).forward(work.work, lengths);
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Forward, work), of_description);
}

TEST(ActionOps, CountTheRowsOfPaddingInProductsAndNotInAttention) {
  const ModelDescription model = small_bert();
  const MicroBatchWork real = work_of(kLengths, 4);
  const MicroBatchWork padded = work_of(kLengths, 4, 10);
  // Ten rows more in the first two layers and in the projections of the last.
  const double of_row = 2.0 * (2 * (4 * 8 * 8 + 2 * 8 * 24) + 3 * 8 * 8);
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Forward, padded),
                   pass_flops(model, Pass::Forward, real) + 10 * of_row);
  EXPECT_DOUBLE_EQ(pass_flops(model, Pass::Backward, padded),
                   pass_flops(model, Pass::Backward, real) + 20 * of_row);
  EXPECT_EQ(without_padding(padded).rows, real.rows);
}

TEST(ActionOps, OfAGpuHaveItsRoundedCounts) {
  const ModelDescription model = small_bert();
  const ComputedWork work = computed_work(work_of(kLengths, 130), model, Device::Cuda);
  EXPECT_EQ(work.rows, 256);
  EXPECT_EQ(work.labels[0], 256);
  EXPECT_EQ(work.labels[1], 128);
  EXPECT_EQ(work.read, 384);
  EXPECT_EQ(work.tokens, 17);
  EXPECT_EQ(work.real_labels, 133);
  const ComputedWork exact = computed_work(work_of(kLengths, 130), model, Device::Cpu);
  EXPECT_EQ(exact.rows, 17);
  EXPECT_EQ(exact.read, 133);
  EXPECT_DOUBLE_EQ(exact.mean_length, (9 + 81 + 25) / 17.0);
}

TEST(ActionOps, DoNothingForWhatNoHeadReads) {
  const ModelDescription model = small_bert();
  const ActionOps ops(model, Device::Cpu, Recomputation::None);
  MicroBatchWork unread = work_of(kLengths, 0);
  unread.work.labels = {};
  for (const MicroBatchWork& micro_batch : {unread, MicroBatchWork{}}) {
    const ComputedWork work = computed_work(micro_batch, model, Device::Cpu);
    EXPECT_TRUE(work.is_empty());
    for (const Pass pass : {Pass::Forward, Pass::Backward, Pass::WeightGradient, Pass::RecomputeFull})
      EXPECT_TRUE(whole_pass(ops, pass, work).ops.empty());
  }
}

TEST(ActionOps, OfALayerStandInTheOrderOfTheEngine) {
  using enum OpKind;
  const ModelDescription model = small_bert();
  const ActionOps ops(model, Device::Cuda, Recomputation::None);
  const ComputedWork work = computed_work(work_of(kLengths, 4), model, Device::Cuda);
  const auto kinds = [&](std::size_t layer, Pass pass) {
    return kinds_of(ops.layer(layer, pass, work, Gradients::Overwritten).ops);
  };
  EXPECT_EQ(kinds(0, Pass::Forward), (std::vector{ProductForward, AttentionForward, ProductForward,
                                                  NormForward, MlpForward, ProductForward, NormForward}));
  EXPECT_EQ(kinds(2, Pass::Forward),
            (std::vector{ProductForward, AttentionForward, Gather, Gather, Gather, Gather, ProductForward,
                         NormForward, MlpForward, ProductForward, NormForward}));
  EXPECT_EQ(kinds(0, Pass::Backward),
            (std::vector{NormBackward, ProductWeightGradient, MlpInputGradient, ProductWeightGradient,
                         ProductInputGradient, NormBackward, ProductWeightGradient, ProductInputGradient,
                         AttentionBackward, ProductWeightGradient, ColumnSums, ProductInputGradient}));
  EXPECT_EQ(kinds(0, Pass::WeightGradient), (std::vector{ProductWeightGradient, ProductWeightGradient,
                                                         ProductWeightGradient, ProductWeightGradient}));
  EXPECT_EQ(kinds(0, Pass::RecomputeMlp), std::vector{MlpForward});
  EXPECT_EQ(kinds(0, Pass::RecomputeFull), kinds(0, Pass::Forward));
}

TEST(ActionOps, OfTheCpuMakeTheGeluAgainWhereItsOutputIsNotKept) {
  const ModelDescription model = small_bert();
  const auto num_activations = [&](Device device, Recomputation recomputation) {
    const ActionOps ops(model, device, recomputation);
    const ComputedWork work = computed_work(work_of(kLengths, 4), model, device);
    return std::ranges::count(kinds_of(ops.layer(0, Pass::Backward, work, Gradients::Overwritten).ops),
                              OpKind::Activation);
  };
  EXPECT_EQ(num_activations(Device::Cpu, Recomputation::None), 1);
  EXPECT_EQ(num_activations(Device::Cpu, Recomputation::Mlp), 0);
  EXPECT_EQ(num_activations(Device::Cpu, Recomputation::Full), 0);
  EXPECT_EQ(num_activations(Device::Cuda, Recomputation::None), 0);
}

/// Bytes of what a layer keeps, by what it is.
std::map<describe::Kept, double> kept_bytes_of(const ModelDescription& model, std::size_t layer, double rows,
                                               double behind, Device device) {
  const describe::LayerRows layer_rows{.attended = static_cast<std::int64_t>(rows),
                                       .behind = static_cast<std::int64_t>(behind)};
  std::map<describe::Kept, double> bytes;
  const auto add = [&](const std::vector<describe::KeptTensor>& tensors) {
    for (const describe::KeptTensor& kept : tensors) {
      bytes[kept.what] =
          static_cast<double>(kept.shape.num_elements()) * static_cast<double>(tensor::size_of(kept.dtype));
    }
  };
  const tensor::Precision precision = tensor::precision_of(device);
  add(kept_tensors(model.layers[layer], layer_rows, {.keeps_mlp_output = true}, precision));
  add(error_tensors(model.layers[layer], layer_rows, precision));
  return bytes;
}

/// Of the weights of a map, as products read them or as gradients.
double weight_bytes(const describe::ParameterTable& table, std::initializer_list<std::string> names,
                    double element_bytes) {
  double bytes = 0;
  for (const std::string& name : names)
    bytes += element_bytes * static_cast<double>(table.at(name).num_elements());
  return bytes;
}

TEST(ActionOps, HaveTheBytesOfTheTensorsThatAreKeptAndOfTheWeights) {
  using describe::Kept;
  const ModelDescription model = small_bert();
  const describe::ParameterTable table(model);
  for (const Device device : {Device::Cpu, Device::Cuda}) {
    const double e = device == Device::Cpu ? 4 : 2;
    const ComputedWork work = computed_work(work_of(kLengths, 4), model, device);
    std::map<Kept, double> kept = kept_bytes_of(model, 0, work.rows, work.rows, device);
    const ActionOps ops(model, device, Recomputation::Mlp);
    const std::vector<Op> forward = ops.layer(0, Pass::Forward, work, Gradients::Overwritten).ops;
    const std::string prefix = "bert.encoder.layer.0.";
    const auto weights = [&](std::initializer_list<std::string> names, double bytes) {
      double sum = 0;
      for (const std::string& name : names) sum += weight_bytes(table, {prefix + name}, bytes);
      return sum;
    };
    const double x = kept[Kept::AttentionNormOutput];  // of the same size as the layer's input
    const double projections = weights(
        {"attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"}, e);
    EXPECT_DOUBLE_EQ(forward[0].bytes, x + projections + kept[Kept::Qkv]);
    EXPECT_DOUBLE_EQ(forward[2].bytes, kept[Kept::Context] + weights({"attention.output.dense.weight"}, e) +
                                           kept[Kept::AttentionNormInput]);
    EXPECT_DOUBLE_EQ(forward[3].bytes, 2 * x + kept[Kept::AttentionNormInput] + x);
    EXPECT_DOUBLE_EQ(forward[4].bytes, x + weights({"intermediate.dense.weight"}, e) + kept[Kept::MlpInner] +
                                           kept[Kept::MlpOutput]);
    EXPECT_DOUBLE_EQ(forward[5].bytes,
                     kept[Kept::MlpOutput] + weights({"output.dense.weight"}, e) + kept[Kept::MlpNormInput]);
    const std::vector<Op> backward = ops.layer(0, Pass::Backward, work, Gradients::AddedTo).ops;
    const double dw2 = weights({"output.dense.weight"}, 4);
    EXPECT_DOUBLE_EQ(backward[1].bytes, kept[Kept::MlpOutput] + kept[Kept::MlpOutputError] + 2 * dw2);
    EXPECT_DOUBLE_EQ(backward[2].bytes, kept[Kept::MlpOutputError] + weights({"output.dense.weight"}, e) +
                                            kept[Kept::MlpInner] + kept[Kept::MlpInnerError]);
    // On top of the gradient of the residual.
    EXPECT_DOUBLE_EQ(backward[4].bytes,
                     kept[Kept::MlpInnerError] + weights({"intermediate.dense.weight"}, e) + 2 * x);
    EXPECT_DOUBLE_EQ(backward[7].bytes, kept[Kept::AttentionOutputError] +
                                            weights({"attention.output.dense.weight"}, e) +
                                            kept[Kept::Context]);
    EXPECT_DOUBLE_EQ(backward[11].bytes, kept[Kept::QkvError] + projections + 2 * x);
    // What comes first overwrites.
    EXPECT_DOUBLE_EQ(ops.layer(0, Pass::Backward, work, Gradients::Overwritten).ops[1].bytes,
                     backward[1].bytes - dw2);
  }
}

TEST(ActionOps, OfTheLastLayerGatherAndScatterTheRowsThatHeadsRead) {
  const ModelDescription model = small_bert();
  const ActionOps ops(model, Device::Cpu, Recomputation::None);
  const ComputedWork work = computed_work(work_of(kLengths, 4, 3), model, Device::Cpu);
  const auto bytes = [&](Pass pass, OpKind kind) {
    std::vector<Op> found = ops.layer(2, pass, work, Gradients::Overwritten).ops;
    std::erase_if(found, [&](const Op& op) { return op.kind != kind; });
    return bytes_of(found);
  };
  // Context and residual of 4 and 3 of 20 rows, 8 wide, in fp32: read and written; their gradients added to
  // zeros.
  EXPECT_EQ(bytes(Pass::Forward, OpKind::Gather), 2 * (2 * 7 * 8 * 4));
  EXPECT_EQ(bytes(Pass::Backward, OpKind::Fill), 2 * (20 * 8 * 4));
  EXPECT_EQ(bytes(Pass::Backward, OpKind::Gather), 2 * (3 * 7 * 8 * 4));
  // The bias of queries and of values, over all rows.
  EXPECT_EQ(bytes(Pass::Backward, OpKind::ColumnSums), 2 * 20 * 8 * 4);
  EXPECT_EQ(bytes(Pass::Backward, OpKind::Activation), 2 * 7 * 24 * 4);
}

TEST(ActionOps, OfNormsFollowDropout) {
  ModelDescription model = small_bert();
  const ComputedWork work = computed_work(work_of(kLengths, 4), model, Device::Cpu);
  const auto norm_bytes = [&](Pass pass, OpKind kind) {
    const ActionOps ops(model, Device::Cpu, Recomputation::None);
    std::vector<Op> found = ops.layer(0, pass, work, Gradients::Overwritten).ops;
    std::erase_if(found, [&](const Op& op) { return op.kind != kind; });
    return bytes_of(found);
  };
  constexpr double kRows = 17 * 8 * 4;
  EXPECT_EQ(norm_bytes(Pass::Backward, OpKind::NormBackward), 2 * 4 * kRows);
  const double forward = norm_bytes(Pass::Forward, OpKind::NormForward);
  model.hidden_dropout = 0;
  // The gradient of the branch is that of the residual.
  EXPECT_EQ(norm_bytes(Pass::Backward, OpKind::NormBackward), 2 * 3 * kRows);
  EXPECT_EQ(norm_bytes(Pass::Forward, OpKind::NormForward), forward);
}

TEST(ActionOps, OfHeadsHaveTheBytesOfTheirRows) {
  using enum OpKind;
  const ModelDescription model = small_bert();
  const ActionOps ops(model, Device::Cpu, Recomputation::None);
  const ComputedWork work = computed_work(work_of(kLengths, 4), model, Device::Cpu);
  const auto bytes = [&](Pass pass, Gradients gradients) {
    std::vector<std::pair<OpKind, double>> found;
    for (const Op& op : ops.heads(pass, work, gradients).ops) found.emplace_back(op.kind, op.bytes / 4);
    return found;
  };
  using Found = std::vector<std::pair<OpKind, double>>;
  // M = 4 masked rows of width 8 and 48 words; 3 rows of two classes.
  EXPECT_EQ(bytes(Pass::Forward, Gradients::Overwritten),
            (Found{{ProductForward, 4 * 8 + 8 * 8 + 4 * 8},
                   {Activation, 2 * 4 * 8},
                   {NormForward, 2 * 4 * 8},
                   {VocabularyLossForward, 4 * 8 + 8 * 48 + 4 * 48},
                   {ColumnSums, 4},
                   {ProductForward, 3 * 8 + 8 * 8 + 3 * 8},
                   {Activation, 2 * 3 * 8},
                   {ProductForward, 3 * 8 + 8 * 2 + 3 * 2},
                   {Activation, 2 * 3 * 2},
                   {ColumnSums, 3}}));
  // Logits become their gradient; what the GELU reads, its gradient in and out; dW added to.
  EXPECT_EQ(bytes(Pass::Backward, Gradients::AddedTo),
            (Found{{VocabularyLossBackward, 2 * 4 * 8 + 8 * 48 + 2 * 4 * 48 + 2 * 8 * 48},
                   {NormBackward, 3 * 4 * 8},
                   {Activation, 3 * 4 * 8},
                   {ProductWeightGradient, 4 * 8 + 4 * 8 + 2 * 8 * 8},
                   {ProductInputGradient, 4 * 8 + 8 * 8 + 4 * 8},
                   {Activation, 2 * 3 * 2},
                   {ProductWeightGradient, 3 * 8 + 3 * 2 + 2 * 8 * 2},
                   {ProductInputGradient, 3 * 8 + 8 * 2 + 3 * 2},
                   {Activation, 3 * 3 * 8},
                   {ProductWeightGradient, 3 * 8 + 3 * 8 + 2 * 8 * 8},
                   {ProductInputGradient, 3 * 8 + 8 * 8 + 3 * 8}}));
  // Heads have their gradients with the inputs'.
  EXPECT_EQ(bytes(Pass::InputGradient, Gradients::AddedTo), bytes(Pass::Backward, Gradients::AddedTo));
  EXPECT_TRUE(bytes(Pass::WeightGradient, Gradients::AddedTo).empty());
  EXPECT_TRUE(bytes(Pass::RecomputeFull, Gradients::AddedTo).empty());
}

TEST(ActionOps, OfTheEmbeddingStandWithTheFirstLayers) {
  using enum OpKind;
  const ModelDescription model = small_bert();
  const ComputedWork work = computed_work(work_of(kLengths, 4, 3), model, Device::Cpu);
  const ActionOps ops(model, Device::Cpu, Recomputation::Full);
  const auto embedding = [&](Pass pass) { return ops.embedding(pass, work, Gradients::AddedTo).ops; };
  EXPECT_EQ(kinds_of(embedding(Pass::Forward)), std::vector{EmbeddingForward});
  EXPECT_EQ(embedding(Pass::Forward).front().rows, 20);
  EXPECT_EQ(kinds_of(embedding(Pass::Backward)), std::vector{EmbeddingBackward});
  EXPECT_EQ(kinds_of(embedding(Pass::InputGradient)), std::vector{EmbeddingBackward});
  EXPECT_TRUE(embedding(Pass::WeightGradient).empty());
  EXPECT_TRUE(embedding(Pass::RecomputeFull).empty());
  const ModelDescription slice = describe::tensor_parallel_slice(model, {.index = 0, .size = 2});
  const ActionOps of_slice(slice, Device::Cpu, Recomputation::None);
  EXPECT_EQ(kinds_of(of_slice.embedding(Pass::Forward, work, Gradients::AddedTo).ops),
            (std::vector{Gather, EmbeddingForward}));
}

TEST(ActionOps, OfAGatedMlpReadTwoHalvesAndWriteOne) {
  const ModelDescription model = small_modern_encoder();
  const ActionOps ops(model, Device::Cpu, Recomputation::None);
  const ComputedWork work = computed_work(work_of(kLengths, 4), model, Device::Cpu);
  const auto find = [&](Pass pass, OpKind kind) {
    const std::vector<Op> found = ops.layer(1, pass, work, Gradients::Overwritten).ops;
    return *std::ranges::find(found, kind, &Op::kind);
  };
  // T = 17 rows, D = 8, F = 12.
  const Op forward = find(Pass::Forward, OpKind::MlpForward);
  EXPECT_DOUBLE_EQ(forward.flops, 2.0 * 17 * 8 * 24);
  EXPECT_DOUBLE_EQ(forward.bytes, 4.0 * (17 * 8 + 8 * 24 + 17 * 24 + 17 * 12));
  const Op backward = find(Pass::Backward, OpKind::MlpInputGradient);
  EXPECT_DOUBLE_EQ(backward.flops, 2.0 * 17 * 8 * 12);
  EXPECT_DOUBLE_EQ(backward.bytes, 4.0 * (17 * 8 + 8 * 12 + 17 * 24 + 17 * 24));
  // Norms stand before sublayers; the first layer has one.
  const auto num_norms = [&](std::size_t layer) {
    return std::ranges::count(kinds_of(ops.layer(layer, Pass::Forward, work, Gradients::Overwritten).ops),
                              OpKind::NormForward);
  };
  EXPECT_EQ(num_norms(0), 1);
  EXPECT_EQ(num_norms(1), 2);
  // Behind the last layer one more, with the head's.
  EXPECT_EQ(std::ranges::count(kinds_of(ops.heads(Pass::Forward, work, Gradients::Overwritten).ops),
                               OpKind::NormForward),
            2);
}

TEST(ActionOps, OfSlicesAddUpToTheWholeModel) {
  const ModelDescription model = small_bert();
  const MicroBatchWork work = work_of(kLengths, 4, 3);
  const double heads_of_all = 2.0 * 4 * 8 * 8 + 2.0 * 3 * (8 * 8 + 8 * 2);  // every slice makes them
  for (const Pass pass : {Pass::Forward, Pass::Backward}) {
    double sum = 0;
    for (const std::size_t index : {0, 1}) {
      const ModelDescription slice = describe::tensor_parallel_slice(model, {.index = index, .size = 2});
      sum += pass_flops(slice, pass, work);
    }
    const double twice = heads_of_all * (pass == Pass::Forward ? 1 : 2);
    EXPECT_DOUBLE_EQ(sum, pass_flops(model, pass, work) + twice);
  }
}

TEST(ActionOps, OfSlicesSumRowsBetweenSublayers) {
  const ModelDescription slice = describe::tensor_parallel_slice(small_bert(), {.index = 1, .size = 2});
  const ActionOps ops(slice, Device::Cpu, Recomputation::Full);
  const ComputedWork work = computed_work(work_of(kLengths, 4, 3), slice, Device::Cpu);
  const auto sums = [](const PartWork& part) {
    return std::accumulate(part.summed_bytes.begin(), part.summed_bytes.end(), 0.0);
  };
  constexpr double kRow = 4 * 8;
  const auto layer = [&](std::size_t index, Pass pass) {
    return sums(ops.layer(index, pass, work, Gradients::Overwritten));
  };
  // T = 20 rows, R = 7 that heads read.
  EXPECT_EQ(layer(0, Pass::Forward), 2 * 20 * kRow);
  EXPECT_EQ(layer(0, Pass::RecomputeFull), 2 * 20 * kRow);
  EXPECT_EQ(layer(0, Pass::RecomputeMlp), 0);
  EXPECT_EQ(layer(0, Pass::Backward), 2 * 20 * kRow);
  EXPECT_EQ(layer(0, Pass::WeightGradient), 0);
  EXPECT_EQ(layer(2, Pass::Forward), 2 * 7 * kRow);
  EXPECT_EQ(layer(2, Pass::Backward), (7 + 20) * kRow);
  EXPECT_EQ(sums(ops.embedding(Pass::Forward, work, Gradients::Overwritten)), 20 * kRow);
  const PartWork heads = ops.heads(Pass::Forward, work, Gradients::Overwritten);
  EXPECT_EQ(heads.gathered_bytes, std::vector<double>{2 * 4 * 16});
  EXPECT_EQ(sums(ops.heads(Pass::Backward, work, Gradients::Overwritten)), 4 * kRow);
  // One rank has nobody to sum with.
  const ModelDescription whole = small_bert();
  const ActionOps alone(whole, Device::Cpu, Recomputation::None);
  EXPECT_TRUE(whole_pass(alone, Pass::Backward, work).summed_bytes.empty());
}

TEST(ActionOps, ZeroTheTablesThatGradientsAreAddedTo) {
  const ModelDescription model = small_bert();
  const ComputedWork work = computed_work(work_of(kLengths, 4), model, Device::Cpu);
  const auto zeroed = [&](WordGradient words, Gradients gradients) {
    const ActionOps ops(model, Device::Cpu, Recomputation::None, words);
    std::vector<Op> fills = ops.embedding(Pass::Backward, work, gradients).ops;
    const std::vector<Op> heads = ops.heads(Pass::Backward, work, gradients).ops;
    fills.insert(fills.end(), heads.begin(), heads.end());
    std::erase_if(fills, [](const Op& op) { return op.kind != OpKind::Fill; });
    return bytes_of(fills);
  };
  constexpr double kOthers = 4 * (16 + 2) * 8;
  constexpr double kWords = 4 * 48 * 8;
  EXPECT_EQ(zeroed(WordGradient::OfOneStage, Gradients::Overwritten), kOthers);
  EXPECT_EQ(zeroed(WordGradient::OfOneStage, Gradients::AddedTo), 0);
  // Each of two ranks has the table.
  EXPECT_EQ(zeroed(WordGradient::Apart, Gradients::Overwritten), kOthers + 2 * kWords);
}

TEST(ActionOps, FindLayersThatAreAlike) {
  const ModelDescription bert = small_bert();
  EXPECT_EQ(ActionOps(bert, Device::Cpu, Recomputation::None).alike_layers(),
            (std::vector<std::size_t>{0, 0, 2}));
  // The first has no norm before attention, every third no window, the last few rows behind attention.
  const ModelDescription modern = test::describe_modern_encoder({.num_layers = 7});
  EXPECT_EQ(ActionOps(modern, Device::Cpu, Recomputation::None).alike_layers(),
            (std::vector<std::size_t>{0, 1, 1, 3, 1, 1, 6}));
}

}  // namespace
}  // namespace plenum::plan
