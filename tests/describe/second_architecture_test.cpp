#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/kept_tensors.h"
#include "plenum/describe/parameter_table.h"

#include "tests/support/modern_encoder.h"

namespace plenum::describe {
namespace {

using test::describe_modern_encoder;

// An architecture that no kernel runs yet: what follows from its description against what others published
// and what was counted by hand.

TEST(SecondArchitecture, HasThePublishedParameters) {
  const ParameterTable base(describe_modern_encoder());
  EXPECT_EQ(base.num_parameters(), 149'655'232);
  EXPECT_EQ(base.parameters().size(), 137U);
  const ParameterTable large(
      describe_modern_encoder({.width = 1024, .num_layers = 28, .num_heads = 16, .mlp_width = 2624}));
  EXPECT_EQ(large.num_parameters(), 395'881'664);
  EXPECT_EQ(large.parameters().size(), 173U);
}

TEST(SecondArchitecture, LaysParametersOutInTheOrderInWhichBackwardCompletesThem) {
  const ParameterTable table(
      describe_modern_encoder({.vocabulary = 100, .width = 128, .num_layers = 2, .num_heads = 2}));
  std::vector<std::string> names;
  for (const Parameter& parameter : table.parameters()) names.push_back(parameter.name);
  const std::vector<std::string> expected = {"decoder.bias",
                                             "head.norm.weight",
                                             "head.dense.weight",
                                             "model.final_norm.weight",
                                             "model.layers.1.mlp.Wo.weight",
                                             "model.layers.1.mlp.Wi.weight",
                                             "model.layers.1.mlp_norm.weight",
                                             "model.layers.1.attn.Wo.weight",
                                             "model.layers.1.attn.Wqkv.weight",
                                             "model.layers.1.attn_norm.weight",
                                             "model.layers.0.mlp.Wo.weight",
                                             "model.layers.0.mlp.Wi.weight",
                                             "model.layers.0.mlp_norm.weight",
                                             "model.layers.0.attn.Wo.weight",
                                             "model.layers.0.attn.Wqkv.weight",
                                             "model.embeddings.norm.weight",
                                             "model.embeddings.tok_embeddings.weight"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(table.at("model.layers.1.mlp.Wi.weight").shape, (tensor::Shape{2 * 1152, 128}));
  const auto last = table.elements_of_layers({1}, {2});
  EXPECT_EQ(last.begin, 0);
  EXPECT_EQ(last.end, table.at("model.layers.0.mlp.Wo.weight").begin);
}

TEST(SecondArchitecture, CountsPairsWithinAWindow) {
  for (const std::int64_t length : {1, 2, 5, 64, 65, 66, 300}) {
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t j = 0; j < length; ++j) pairs += std::abs(i - j) <= 64 ? 1 : 0;
    }
    EXPECT_EQ(attended_pairs(length, 64), pairs) << length;
    EXPECT_EQ(attended_pairs(length, std::nullopt), length * length) << length;
  }
}

TEST(SecondArchitecture, NeedsThePublishedFlops) {
  const ModelDescription model = describe_modern_encoder();
  constexpr std::int64_t kTokens = 1024;
  const batch::Work work{
      .tokens = kTokens, .squared_lengths = kTokens * kTokens, .sequences = 1, .labels = {kTokens * 3 / 10}};
  const std::int32_t lengths[] = {kTokens};
  // 825 MFLOP a token where every token passes through all of the last layer: 662 of layers, 71 of the head,
  // 92 of attention, of which 8 layers of 22 read 1,024 keys and the others 125.
  const double not_read = 6.0 * (768 * 768 + 768 * 3 * 1152) * static_cast<double>(kTokens - work.labels[0]);
  const double per_token = (Flops(model).training(work, lengths) + not_read) / kTokens;
  EXPECT_NEAR(per_token, 824e6, 1e6);
  // To the last operation.
  const double maps = 2.0 * (4 * 768 * 768 + 3 * 768 * 1152) * 22 * kTokens;
  const double attention = 4.0 * 768 * (8.0 * 1024 * 1024 + 14.0 * (1024 + 2 * 64 * 1024 - 64 * 65));
  const double head = 2.0 * 307 * 768 * (768 + 50368);
  EXPECT_DOUBLE_EQ(Flops(model).forward(work, lengths) + not_read / 3, maps + attention + head);
}

TEST(SecondArchitecture, CountsEachWindowInEachSequence) {
  ModelDescription model =
      describe_modern_encoder({.vocabulary = 100, .width = 128, .num_layers = 4, .num_heads = 2});
  model.layers[0].attention.window = std::nullopt;
  model.layers[1].attention.window = 1;
  model.layers[2].attention.window = 2;
  model.layers[3].attention.window = 1;
  // Sequences of 5 and 3 tokens: 25 + 9 pairs of all, 13 + 7 with the neighbour to each side, 19 + 9 with
  // two.
  const batch::Work work{.tokens = 8, .squared_lengths = 25 + 9, .sequences = 2};
  const std::int32_t lengths[] = {5, 3};
  batch::Work no_pairs = work;
  no_pairs.squared_lengths = 0;
  const double pairs = 34 + 2 * 20 + 28;
  EXPECT_DOUBLE_EQ(Flops(model).forward(work, lengths) - Flops(model).forward(no_pairs, {}), 4 * 128 * pairs);
  EXPECT_THROW(Flops(model).forward(work), base::InternalError);
}

TEST(SecondArchitecture, HasAFactorForEachMatrixOfItsMaps) {
  const std::vector<FactorShape> shapes = factor_shapes(describe_modern_encoder().layers[1]);
  const std::vector<FactorShape> expected = {{768, 768},  {768, 768},  {768, 768}, {768, 768},
                                             {768, 1152}, {768, 1152}, {1152, 768}};
  EXPECT_EQ(shapes, expected);
}

TEST(SecondArchitecture, KeepsWhatWasCountedByHand) {
  // D = 128 in 2 heads, F = 1152, T = 256 rows of 4 bytes, all tensors whole lines of 256 bytes.
  const ModelDescription model =
      describe_modern_encoder({.vocabulary = 100, .width = 128, .num_layers = 2, .num_heads = 2});
  const auto bytes = [&](std::size_t layer, const LayerRows& rows, const Keeping& keeping = {}) {
    return kept_bytes(kept_tensors(model.layers[layer], rows, keeping, tensor::Precision()));
  };
  // Queries, keys, values, context, two numbers of softmax; the sum behind attention, two moments and the
  // output of the norm before the MLP; both halves in front of the GeGLU. Before attention two moments and
  // the norm's output, which the first layer has not.
  constexpr std::size_t kFirst = 4 * 128 + 2 + 2 * 128 + 2 + 2 * 1152;
  constexpr std::size_t kNorm = 128 + 2;
  const LayerRows all{.attended = 256, .behind = 256};
  EXPECT_EQ(bytes(0, all), 4 * 256 * kFirst);
  EXPECT_EQ(bytes(1, all), 4 * 256 * (kFirst + kNorm));
  EXPECT_EQ(bytes(1, all, {.keeps_mlp_output = true}), 4 * 256 * (kFirst + kNorm + 1152));
  EXPECT_EQ(bytes(1, all, {.keeps_mlp_inner = false}), 4 * 256 * (kFirst + kNorm - 2 * 1152));
  EXPECT_EQ(bytes(1, all, {.dropout_bytes = 512}), 4 * 256 * (kFirst + kNorm) + 512);
  // Of the last layer what heads read, and the context's rows that they read.
  const LayerRows last{.attended = 256, .behind = 64, .read = 64};
  EXPECT_EQ(bytes(1, last), 4 * (256 * (4 * 128 + 2 + kNorm) + 64 * (128 + 2 * 128 + 2 + 2 * 1152)));
}

TEST(SecondArchitecture, KeepsActivationsInTheTypeOfTheirRole) {
  const ModelDescription model =
      describe_modern_encoder({.vocabulary = 100, .width = 128, .num_layers = 1, .num_heads = 2});
  const LayerRows all{.attended = 256, .behind = 256};
  const tensor::Precision half({.activation = tensor::DType::BFloat16});
  const std::size_t bytes = kept_bytes(kept_tensors(model.layers[0], all, {}, half));
  EXPECT_EQ(bytes, 256U * (2 * (4 * 128 + 2 * 128 + 2 * 1152) + 4 * (2 + 2)));
}

}  // namespace
}  // namespace plenum::describe
