#include "plenum/calibrate/bound_op.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "plenum/base/philox.h"
#include "plenum/calibrate/op_binder.h"
#include "plenum/kernels/activation.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/attention_work.h"
#include "plenum/kernels/column_sums.h"
#include "plenum/kernels/embedding.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/mlp_gelu.h"
#include "plenum/kernels/rows.h"
#include "plenum/kernels/vocabulary_loss.h"
#include "plenum/workspace/kronecker.h"

namespace plenum::calibrate {
using plan::Op;
using plan::OpKind;
using tensor::ConstTensorView;
using tensor::DType;
using tensor::Stream;
using tensor::TensorView;

namespace {

constexpr std::int64_t kHeadWidth = 64;
constexpr std::int64_t kPositions = 512;  ///< of the embedding's table
constexpr std::int64_t kLength = 128;     ///< of sequences, where only the embedding cares

struct AttentionShape {
  explicit AttentionShape(const OpSizes& sizes)
      : heads(sizes.E % kHeadWidth == 0 ? sizes.E / kHeadWidth : 1), width(sizes.E / heads) {
    for (std::int64_t row = 0; row < sizes.T; row += sizes.D) {
      starts.push_back(static_cast<std::int32_t>(row));
      lengths.push_back(static_cast<std::int32_t>(std::min(sizes.D, sizes.T - row)));
      samples.push_back(static_cast<std::int64_t>(samples.size()));
    }
  }

  std::int64_t heads, width;
  std::vector<std::int32_t> starts, lengths;
  std::vector<std::int64_t> samples;
};

/// Rows by what they read of a table.
kernels::RowGroups groups_of(const std::vector<std::int32_t>& entry_of_row, ArgumentRoom& room) {
  std::map<std::int32_t, std::vector<std::int32_t>> rows_of;
  for (std::size_t row = 0; row < entry_of_row.size(); ++row) {
    rows_of[entry_of_row[row]].push_back(static_cast<std::int32_t>(row));
  }
  std::vector<std::int32_t> entries, starts, rows;
  for (const auto& [entry, of_entry] : rows_of) {
    entries.push_back(entry);
    starts.push_back(static_cast<std::int32_t>(rows.size()));
    rows.insert(rows.end(), of_entry.begin(), of_entry.end());
  }
  starts.push_back(static_cast<std::int32_t>(rows.size()));
  return {.entry_G = room.of(entries), .start_G = room.of(starts), .row_R = room.of(rows)};
}

}  // namespace

kernels::RowIdentities OpBinder::identities() {
  std::vector<std::int64_t> samples;
  std::vector<std::int32_t> positions;
  for (std::int64_t row = 0; row < sizes_.T; ++row) {
    samples.push_back(row / kLength);
    positions.push_back(static_cast<std::int32_t>(row % kLength));
  }
  return {.sample_T = room_.of(samples), .position_T = room_.of(positions)};
}

BoundOp OpBinder::product_forward() {
  const auto [T, D, E] = sizes_;
  return {[args = kernels::LinearForward{.x_TD = activation({T, D}),
                                         .w_ED = weight({E, D}),
                                         .b_E = weight({E}),
                                         .y_TE = activation_out({T, E})}](const Stream& stream) {
            kernels::linear_forward(stream, args);
          },
          {}};
}

BoundOp OpBinder::product_input_gradient() {
  const auto [T, D, E] = sizes_;
  return {[args = kernels::LinearBackwardInput{.dy_TE = activation({T, E}),
                                               .w_ED = weight({E, D}),
                                               .dx_TD = activation_out({T, D})}](const Stream& stream) {
            kernels::linear_backward_input(stream, args);
          },
          {}};
}

BoundOp OpBinder::product_weight_gradient() {
  const auto [T, D, E] = sizes_;
  return {[args = kernels::LinearBackwardWeight{.x_TD = activation({T, D}),
                                                .dy_TE = activation({T, E}),
                                                .dw_ED = floats_out({E, D}),
                                                .accumulate = kernels::Accumulate::No}](
              const Stream& stream) { kernels::linear_backward_weight(stream, args); },
          {}};
}

BoundOp OpBinder::mlp_forward() {
  const auto [T, D, F] = sizes_;
  return {[args = kernels::MlpGeluForward{.x_TD = activation({T, D}),
                                          .w1_FD = weight({F, D}),
                                          .b1_F = weight({F}),
                                          .h_TF = activation_out({T, F}),
                                          .kept_TF = activation_out({T, F})}](const Stream& stream) {
            kernels::mlp_gelu_forward(stream, args);
          },
          {}};
}

BoundOp OpBinder::mlp_input_gradient() {
  const auto [T, D, F] = sizes_;
  return {[args = kernels::MlpGeluBackward{.dy_TD = activation({T, D}),
                                           .w2_DF = weight({D, F}),
                                           .kept_TF = activation({T, F}),
                                           .du_TF = activation_out({T, F}),
                                           .db1_F = floats({F})}](const Stream& stream) {
            kernels::mlp_gelu_backward(stream, args);
          },
          {}};
}

BoundOp OpBinder::attention() {
  const auto shape = std::make_shared<const AttentionShape>(sizes_);
  const std::int64_t T = sizes_.T, H = shape->heads, K = shape->width;
  const batch::SequenceOffsets sequences{shape->starts, shape->lengths, T};
  kernels::AttentionForward forward{.qkv_T3HK = activation({T, 3, H, K}),
                                    .sequences = sequences,
                                    .samples = shape->samples,
                                    .work = {},
                                    .dropout = dropout(kernels::DropoutSite::AttentionWeights),
                                    .context_THK = activation_out({T, H, K}),
                                    .lse_HT = floats_out({H, T})};
  if (is_gpu()) {
    const kernels::AttentionWorkList list = kernels::attention_work_list(sequences);
    const auto num_tiles = std::ssize(list.tiles_N4) / 4;
    const auto num_gaps = std::ssize(list.gaps_G2) / 2;
    forward.work = {.counts_2 = room_.of(std::vector<std::int32_t>{static_cast<std::int32_t>(num_tiles),
                                                                   static_cast<std::int32_t>(num_gaps)}),
                    .tiles_N4 = room_.of(list.tiles_N4, {num_tiles, 4}),
                    .gaps_G2 = room_.of(list.gaps_G2, {num_gaps, 2}),
                    .sample_S = room_.of(shape->samples)};
    const std::size_t bits = kernels::attention_keep_bytes(
        room_.device(), {.rows = T, .max_length = sizes_.D, .heads = H, .head_width = K});
    forward.keep_bits = room_.output(DType::Byte, {static_cast<std::int64_t>(bits)});
  }
  const auto run_forward = [shape, forward](const Stream& stream) {
    kernels::attention_forward(stream, forward);
  };
  if (kind_ == OpKind::AttentionForward) return {run_forward, {}};
  const kernels::AttentionBackward backward{.qkv_T3HK = forward.qkv_T3HK,
                                            .context_THK = forward.context_THK,
                                            .lse_HT = forward.lse_HT,
                                            .dcontext_THK = activation({T, H, K}),
                                            .sequences = sequences,
                                            .samples = shape->samples,
                                            .work = forward.work,
                                            .dropout = forward.dropout,
                                            .keep_bits = forward.keep_bits,
                                            .dqkv_T3HK = activation_out({T, 3, H, K})};
  return {[shape, backward](const Stream& stream) { kernels::attention_backward(stream, backward); },
          run_forward};
}

namespace {

std::vector<std::int32_t> random_labels(std::int64_t count, std::int64_t words) {
  const base::RandomFunction random(1, base::Purpose::Initialisation);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const double at =
        base::to_unit_interval(random(static_cast<std::uint64_t>(i))) * static_cast<double>(words);
    labels.push_back(static_cast<std::int32_t>(at));
  }
  return labels;
}

}  // namespace

BoundOp OpBinder::vocabulary_forward() {
  const auto [M, D, V] = sizes_;
  const std::int64_t W = kernels::vocabulary_stride(room_.device(), V);
  return {[args = kernels::VocabularyLossForward{.h_MD = activation({M, D}),
                                                 .w_VD = weight({V, D}),
                                                 .b_V = weight({V}),
                                                 .label_M = room_.of(random_labels(M, V)),
                                                 .logits_MW = activation_out({M, W}),
                                                 .tiles_MN2 = floats_out(
                                                     {M, kernels::vocabulary_tiles(room_.device(), V), 2}),
                                                 .lse_M = floats_out({M}),
                                                 .loss_M = floats_out({M}),
                                                 .prediction_M = {}}](const Stream& stream) {
            kernels::vocabulary_loss_forward(stream, args);
          },
          {}};
}

BoundOp OpBinder::vocabulary_backward() {
  constexpr float kLogOfSum = 10;  // whatever the logits are by now, none of their gradients is too small
  const auto [M, D, V] = sizes_;
  const std::int64_t W = kernels::vocabulary_stride(room_.device(), V);
  return {[args = kernels::VocabularyLossBackward{.h_MD = activation({M, D}),
                                                  .w_VD = weight({V, D}),
                                                  .label_M = room_.of(random_labels(M, V)),
                                                  .lse_M = constant(M, kLogOfSum),
                                                  .scale_1 = room_.of(std::vector<double>{1}),
                                                  .logits_MW = activation({M, W}),
                                                  .dh_MD = activation_out({M, D}),
                                                  .dw_VD = floats_out({V, D}),
                                                  .db_V = floats({V}),
                                                  .accumulate = kernels::Accumulate::No}](
              const Stream& stream) { kernels::vocabulary_loss_backward(stream, args); },
          {}};
}

BoundOp OpBinder::norm_forward() {
  const std::int64_t T = sizes_.T, D = sizes_.D;
  return {[args = kernels::LayerNormForward{.x_TD = activation({T, D}),
                                            .residual_TD = activation({T, D}),
                                            .gamma_D = floats({D}),
                                            .beta_D = floats({D}),
                                            .dropout = dropout(kernels::DropoutSite::MlpOutput),
                                            .rows = identities(),
                                            .z_TD = activation_out({T, D}),
                                            .y_TD = activation_out({T, D}),
                                            .mean_T = floats_out({T}),
                                            .inverse_deviation_T = floats_out({T})}](const Stream& stream) {
            kernels::layer_norm_forward(stream, args);
          },
          {}};
}

BoundOp OpBinder::norm_backward() {
  const std::int64_t T = sizes_.T, D = sizes_.D;
  const kernels::Dropout dropout = this->dropout(kernels::DropoutSite::MlpOutput);
  return {[args = kernels::LayerNormBackward{.dy_TD = activation({T, D}),
                                             .z_TD = activation({T, D}),
                                             .mean_T = constant(T, 0),
                                             .inverse_deviation_T = constant(T, 1),
                                             .gamma_D = floats({D}),
                                             .dropout = dropout,
                                             .rows = identities(),
                                             .dz_TD = activation_out({T, D}),
                                             .dx_TD = dropout.is_on() ? activation_out({T, D}) : TensorView(),
                                             .dgamma_D = floats({D}),
                                             .dbeta_D = floats({D}),
                                             .db_D = floats({D})}](const Stream& stream) {
            kernels::layer_norm_backward(stream, args);
          },
          {}};
}

namespace {

/// As frequent as in text.
std::vector<std::int32_t> random_words(std::int64_t count, std::int64_t words) {
  const base::RandomFunction random(2, base::Purpose::Initialisation);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const double at = base::to_unit_interval(random(static_cast<std::uint64_t>(i)));
    const double word = std::pow(static_cast<double>(words), at);  // in [1, words)
    ids.push_back(static_cast<std::int32_t>(std::min<double>(word, static_cast<double>(words) - 1)));
  }
  return ids;
}

}  // namespace

BoundOp OpBinder::embedding() {
  const std::int64_t T = sizes_.T, D = sizes_.D, V = std::max<std::int64_t>(2, setting_.vocabulary);
  const std::vector<std::int32_t> words = random_words(T, V);
  std::vector<std::int32_t> positions, segments;
  for (std::int64_t row = 0; row < T; ++row) {
    positions.push_back(static_cast<std::int32_t>(row % kLength));
    segments.push_back(row % kLength < kLength / 2 ? 0 : 1);
  }
  const kernels::Dropout dropout = this->dropout(kernels::DropoutSite::Embedding);
  const kernels::RowIdentities rows = identities();
  if (kind_ == OpKind::EmbeddingForward) {
    return {[args = kernels::EmbeddingForward{.id_T = room_.of(words),
                                              .position_T = rows.position_T,
                                              .segment_T = room_.of(segments),
                                              .word_VD = weight({V, D}),
                                              .position_PD = weight({kPositions, D}),
                                              .segment_GD = weight({2, D}),
                                              .gamma_D = floats({D}),
                                              .beta_D = floats({D}),
                                              .dropout = dropout,
                                              .rows = rows,
                                              .z_TD = activation_out({T, D}),
                                              .y_TD = activation_out({T, D}),
                                              .mean_T = floats_out({T}),
                                              .inverse_deviation_T = floats_out({T})}](const Stream& stream) {
              kernels::embedding_forward(stream, args);
            },
            {}};
  }
  return {[args = kernels::EmbeddingBackward{.dy_TD = activation({T, D}),
                                             .z_TD = activation({T, D}),
                                             .mean_T = constant(T, 0),
                                             .inverse_deviation_T = constant(T, 1),
                                             .gamma_D = floats({D}),
                                             .dropout = dropout,
                                             .rows = rows,
                                             .by_word = groups_of(words, room_),
                                             .by_position = groups_of(positions, room_),
                                             .by_segment = groups_of(segments, room_),
                                             .dz_TD = activation_out({T, D}),
                                             .dword_VD = floats({V, D}),
                                             .dposition_PD = floats({kPositions, D}),
                                             .dsegment_GD = floats({2, D}),
                                             .dgamma_D = floats({D}),
                                             .dbeta_D = floats({D})}](const Stream& stream) {
            kernels::embedding_backward(stream, args);
          },
          {}};
}

BoundOp OpBinder::activation_function() {
  const std::int64_t T = sizes_.T, D = sizes_.D;
  return {[args = kernels::GeluForward{.x = activation({T, D}), .y = activation_out({T, D})}](
              const Stream& stream) { kernels::gelu_forward(stream, args); },
          {}};
}

BoundOp OpBinder::column_sums() {
  // Queries' and values' columns, of three parts.
  const std::int64_t T = sizes_.T;
  const bool has_two_parts = sizes_.D % 2 == 0;
  const std::int64_t D = has_two_parts ? sizes_.D / 2 : sizes_.D;
  return {
      [args =
           kernels::AddColumnSums{.x_T3D = activation({T, 3 * D}),
                                  .sum_3_D = {floats({D}), {}, has_two_parts ? floats({D}) : TensorView()}}](
          const Stream& stream) { kernels::add_column_sums(stream, args); },
      {}};
}

BoundOp OpBinder::gather() {
  constexpr std::int32_t kEvery = 4;  // of the table's rows
  const std::int64_t T = sizes_.T, D = sizes_.D;
  std::vector<std::int32_t> index;
  for (std::int64_t row = 0; row < T; ++row) index.push_back(static_cast<std::int32_t>(row) * kEvery);
  return {[args = kernels::GatherRowsForward{.x_TD = activation({T * kEvery, D}),
                                             .index_M = room_.of(index),
                                             .y_MD = activation_out({T, D})}](const Stream& stream) {
            kernels::gather_rows_forward(stream, args);
          },
          {}};
}

BoundOp OpBinder::fill() {
  const TensorView view = activation_out({sizes_.T, sizes_.D});
  return {[view](const Stream& stream) { tensor::set_zero(stream, view); }, {}};
}

BoundOp OpBinder::bind() {
  switch (kind_) {
    case OpKind::ProductForward:
      return product_forward();
    case OpKind::ProductInputGradient:
      return product_input_gradient();
    case OpKind::ProductWeightGradient:
      return product_weight_gradient();
    case OpKind::MlpForward:
      return mlp_forward();
    case OpKind::MlpInputGradient:
      return mlp_input_gradient();
    case OpKind::AttentionForward:
    case OpKind::AttentionBackward:
      return attention();
    case OpKind::VocabularyLossForward:
      return vocabulary_forward();
    case OpKind::VocabularyLossBackward:
      return vocabulary_backward();
    case OpKind::NormForward:
      return norm_forward();
    case OpKind::NormBackward:
      return norm_backward();
    case OpKind::EmbeddingForward:
    case OpKind::EmbeddingBackward:
      return embedding();
    case OpKind::Activation:
      return activation_function();
    case OpKind::ColumnSums:
      return column_sums();
    case OpKind::Gather:
      return gather();
    case OpKind::Fill:
      return fill();
    case OpKind::AdamW:
    case OpKind::Lamb:
      return update();
    case OpKind::SquareGradient:
      return square_gradient();
    case OpKind::SecondMoment:
      return second_moment();
    case OpKind::Inverse:
      return inverse();
    case OpKind::Precondition:
      return precondition();
    case OpKind::Orthonormalise:
      return orthonormalise();
  }
  base::check(false, "an op has a kind that is not known: {}", static_cast<int>(kind_));
  return {};
}

BoundOp bind_op(const Op& op, const OpSetting& setting, ArgumentRoom& room) {
  return OpBinder(op, setting, room).bind();
}

std::size_t op_scratch_bytes(const Op& op, tensor::Device device) {
  const OpSizes sizes(op);
  switch (op.kind) {
    case OpKind::MlpForward:
    case OpKind::MlpInputGradient:
      return kernels::mlp_gelu_scratch_bytes(device, sizes.T, sizes.E);
    case OpKind::AttentionForward:
    case OpKind::AttentionBackward: {
      const AttentionShape shape(sizes);
      return kernels::attention_scratch_bytes(
          device, {.rows = sizes.T, .max_length = sizes.D, .heads = shape.heads, .head_width = shape.width});
    }
    case OpKind::VocabularyLossForward:
    case OpKind::VocabularyLossBackward:
      return kernels::vocabulary_loss_scratch_bytes(device);
    case OpKind::NormForward:
    case OpKind::NormBackward:
      return kernels::layer_norm_scratch_bytes(device, sizes.D);
    case OpKind::EmbeddingForward:
    case OpKind::EmbeddingBackward:
      return kernels::embedding_scratch_bytes(device, sizes.T, sizes.D);
    case OpKind::AdamW:
    case OpKind::Lamb:
    case OpKind::SquareGradient:
      return kernels::optimizer_scratch_bytes(device, sizes.T, std::ssize(update_ranges(sizes.T)));
    case OpKind::SecondMoment:
    case OpKind::Inverse:
    case OpKind::Precondition:
      return workspace::kronecker_scratch_bytes(device);
    default:
      return kernels::linear_scratch_bytes(device);
  }
}

}  // namespace plenum::calibrate
