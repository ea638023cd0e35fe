#include "plenum/kernels/check_scratch.h"

#include <gtest/gtest.h>

#include "plenum/kernels/attention.h"
#include "plenum/kernels/dropout_rows.h"
#include "plenum/kernels/embedding.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/mlp_gelu.h"
#include "plenum/kernels/vocabulary_loss.h"

#include "tests/ops/op_testing.h"

// T rows, D width, V words: each op with arguments that fit, and scratch that does or does not.

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;

constexpr std::int64_t T = 2;
constexpr std::int64_t D = 48;

/// Runs `op` with just the scratch that it says it needs, and with less.
template <typename Op>
void expect_needs(std::size_t scratch_bytes, Op op) {
  constexpr std::size_t kThreads = 2;
  const OpContext enough(kThreads, scratch_bytes);
  EXPECT_NO_THROW(op(enough.stream()));
  const OpContext too_little(kThreads, scratch_bytes - tensor::MemoryLayout::kAlignment);
  EXPECT_THROW(op(too_little.stream()), base::InternalError);
}

TEST(CheckScratch, RefusesASequenceLongerThanTheScratchOfAttention) {
  constexpr std::int64_t kLength = 4000;
  const TestTensor<float> qkv_T3HK({kLength, 3, 1, 1});
  const TestTensor<float> dcontext_THK({kLength, 1, 1});
  TestTensor<float> context_THK({kLength, 1, 1}), lse_HT({1, kLength}), dqkv_T3HK({kLength, 3, 1, 1});
  const std::vector<std::int32_t> starts = {0, 1};
  const std::vector<std::int32_t> lengths = {1, kLength - 1};
  const batch::SequenceOffsets sequences = {starts, lengths, kLength};
  const OpContext context(1, attention_scratch_bytes(tensor::Device::Cpu, {kLength, 64, 1, 1}));
  EXPECT_THROW(attention_forward(context.stream(), {.qkv_T3HK = qkv_T3HK,
                                                    .sequences = sequences,
                                                    .samples = {},
                                                    .dropout = {},
                                                    .context_THK = context_THK,
                                                    .lse_HT = lse_HT}),
               base::InternalError);
  EXPECT_THROW(attention_backward(context.stream(), {.qkv_T3HK = qkv_T3HK,
                                                     .context_THK = context_THK,
                                                     .lse_HT = lse_HT,
                                                     .dcontext_THK = dcontext_THK,
                                                     .sequences = sequences,
                                                     .samples = {},
                                                     .dropout = {},
                                                     .dqkv_T3HK = dqkv_T3HK}),
               base::InternalError);
}

TEST(CheckScratch, HoldsForLayerNorm) {
  const TestTensor<float> x_TD({T, D}), gamma_D({D}), beta_D({D}), mean_T({T}), inverse_deviation_T({T});
  TestTensor<float> y_TD({T, D}), dz_TD({T, D}), dgamma_D({D}), dbeta_D({D});
  expect_needs(layer_norm_scratch_bytes(tensor::Device::Cpu, D), [&](const tensor::Stream& stream) {
    LayerNormForward args;
    args.x_TD = x_TD;
    args.gamma_D = gamma_D;
    args.beta_D = beta_D;
    args.y_TD = y_TD;
    layer_norm_forward(stream, args);
  });
  expect_needs(layer_norm_scratch_bytes(tensor::Device::Cpu, D), [&](const tensor::Stream& stream) {
    LayerNormBackward args;
    args.dy_TD = x_TD;
    args.z_TD = x_TD;
    args.mean_T = mean_T;
    args.inverse_deviation_T = inverse_deviation_T;
    args.gamma_D = gamma_D;
    args.dz_TD = dz_TD;
    args.dgamma_D = dgamma_D;
    args.dbeta_D = dbeta_D;
    layer_norm_backward(stream, args);
  });
}

TEST(CheckScratch, HoldsForDropoutOfRows) {
  const TestTensor<float> x_TD({T, D});
  const TestTensor<std::int64_t> sample_T({T});
  const TestTensor<std::int32_t> position_T({T});
  TestTensor<float> y_TD({T, D});
  expect_needs(workspace::dropout_rows_scratch_bytes(tensor::Device::Cpu, D),
               [&](const tensor::Stream& stream) {
                 dropout_rows(stream, {.x_TD = x_TD,
                                       .dropout = {.threshold = 26},
                                       .rows = {.sample_T = sample_T, .position_T = position_T},
                                       .y_TD = y_TD});
               });
}

TEST(CheckScratch, HoldsForEmbedding) {
  const TestTensor<std::int32_t> id_T({T});
  const TestTensor<float> table_VD({1, D}), gamma_D({D}), beta_D({D}), dy_TD({T, D});
  TestTensor<float> z_TD({T, D}), y_TD({T, D}), mean_T({T}), inverse_deviation_T({T});
  TestTensor<float> dtable_VD({1, D}), dgamma_D({D}), dbeta_D({D});
  expect_needs(embedding_scratch_bytes(tensor::Device::Cpu, T, D), [&](const tensor::Stream& stream) {
    EmbeddingForward args;
    args.id_T = args.position_T = args.segment_T = id_T;
    args.word_VD = args.position_PD = args.segment_GD = table_VD;
    args.gamma_D = gamma_D;
    args.beta_D = beta_D;
    args.z_TD = z_TD;
    args.y_TD = y_TD;
    args.mean_T = mean_T;
    args.inverse_deviation_T = inverse_deviation_T;
    embedding_forward(stream, args);
  });
  expect_needs(embedding_scratch_bytes(tensor::Device::Cpu, T, D), [&](const tensor::Stream& stream) {
    EmbeddingBackward args;
    args.dy_TD = dy_TD;
    args.z_TD = z_TD;
    args.mean_T = mean_T;
    args.inverse_deviation_T = inverse_deviation_T;
    args.gamma_D = gamma_D;
    args.dz_TD = y_TD;
    args.dword_VD = args.dposition_PD = args.dsegment_GD = dtable_VD;
    args.dgamma_D = dgamma_D;
    args.dbeta_D = dbeta_D;
    embedding_backward(stream, args);
  });
}

TEST(CheckScratch, HoldsForVocabularyLoss) {
  constexpr std::int64_t V = 3;
  const TestTensor<float> h_MD({T, D}), w_VD({V, D}), b_V({V});
  const TestTensor<std::int32_t> label_M({T});
  TestTensor<float> logits_MV({T, V}), tiles_MN2({T, 1, 2}), lse_M({T}), loss_M({T});
  const TestTensor<double> scale_1({1}, 1.0);
  TestTensor<float> dh_MD({T, D}), dw_VD({V, D}), db_V({V});
  expect_needs(vocabulary_loss_scratch_bytes(tensor::Device::Cpu), [&](const tensor::Stream& stream) {
    vocabulary_loss_forward(stream, {.h_MD = h_MD,
                                     .w_VD = w_VD,
                                     .b_V = b_V,
                                     .label_M = label_M,
                                     .logits_MW = logits_MV,
                                     .tiles_MN2 = tiles_MN2,
                                     .lse_M = lse_M,
                                     .loss_M = loss_M,
                                     .prediction_M = {}});
  });
  expect_needs(vocabulary_loss_scratch_bytes(tensor::Device::Cpu), [&](const tensor::Stream& stream) {
    vocabulary_loss_backward(stream, {.h_MD = h_MD,
                                      .w_VD = w_VD,
                                      .label_M = label_M,
                                      .lse_M = lse_M,
                                      .scale_1 = scale_1,
                                      .logits_MW = logits_MV,
                                      .dh_MD = dh_MD,
                                      .dw_VD = dw_VD,
                                      .db_V = db_V});
  });
}

// Plans do not depend on the processor, whose registers decide how kernels cut their work. Sizes are by hand.
TEST(CpuScratch, IsTheSameForEveryProcessor) {
  constexpr tensor::Device kCpu = tensor::Device::Cpu;
  constexpr std::size_t kProduct = 4 * (256 * 768 + 256 * 128);
  EXPECT_EQ(linear_scratch_bytes(kCpu), kProduct);
  EXPECT_EQ(vocabulary_loss_scratch_bytes(kCpu), kProduct);
  EXPECT_EQ(mlp_gelu_scratch_bytes(kCpu, 1 << 20, 3072), kProduct);
  EXPECT_EQ(layer_norm_scratch_bytes(kCpu, 768), 768U + 64 * 3 * 768 * 4);
  // 100 columns are 7 groups of 16: 258 rows of scores and of gradients, a number of each row in whole lines,
  // and random bytes of 258 * 7 groups, 16 of them at a time.
  EXPECT_EQ(attention_scratch_bytes(kCpu, {.rows = 300, .max_length = 100, .heads = 12, .head_width = 64}),
            2U * 258 * 112 * 4 + 1088 + 1808 * 16 + kProduct);
}

// Memory is planned for a GPU where there is none, and by builds without its kernels. Sizes are by hand, of
// BERT-base with 1,024 rows.
TEST(CudaScratch, IsKnownInEveryBuild) {
  constexpr tensor::Device kGpu = tensor::Device::Cuda;
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  EXPECT_EQ(linear_scratch_bytes(kGpu), 32 * kMiB + 1024 + 64 * kMiB);
  EXPECT_EQ(vocabulary_loss_scratch_bytes(kGpu), 32 * kMiB + 1024 + 16 * kMiB);
  EXPECT_EQ(mlp_gelu_scratch_bytes(kGpu, 1024, 3072), 32 * kMiB + 1024);
  EXPECT_EQ(mlp_gelu_scratch_bytes(kGpu, 1 << 20, 3072), (std::size_t{1} << 20) / 128 * 3072 * 4);
  EXPECT_EQ(layer_norm_scratch_bytes(kGpu, 768), 512U * 3 * 768 * 4);
  EXPECT_EQ(embedding_scratch_bytes(kGpu, 1024, 768), 512U * 3 * 768 * 4);
  EXPECT_EQ(embedding_scratch_bytes(kGpu, 1 << 20, 768), (1U << 20) / 64 * 3 * (2 * 768 * 4 + 8));
  // A counter; dQ and two statistics of eight blocks of 64 queries for each of 144 thread blocks; bits of
  // dropout twice, 16 bytes for 128 columns of a row.
  const std::size_t keep_bytes = (12U * 4 * 1024 + 64) * 16;
  const AttentionSize size = {.rows = 1024, .max_length = 512, .heads = 12, .head_width = 64};
  EXPECT_EQ(attention_keep_bytes(kGpu, size), keep_bytes);
  EXPECT_EQ(attention_scratch_bytes(kGpu, size), 256 + 144U * 8 * (64 * 64 + 2 * 64) * 4 + 2 * keep_bytes);
}

TEST(CudaScratch, SaysWhatTheGpuCannotRun) {
  EXPECT_THROW(layer_norm_scratch_bytes(tensor::Device::Cuda, 4104), base::UserError);
  EXPECT_THROW(attention_scratch_bytes(tensor::Device::Cuda,
                                       {.rows = 8, .max_length = 8, .heads = 2, .head_width = 32}),
               base::UserError);
}

}  // namespace
}  // namespace plenum::kernels
