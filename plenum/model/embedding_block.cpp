#include "plenum/model/embedding_block.h"

#include "plenum/kernels/embedding.h"
#include "plenum/kernels/rows.h"
#include "plenum/model/rank_sums.h"

namespace plenum::model {
namespace {

// T rows, D width.
//
// Forward:  z = word[id] + position[p] + segment[g];  y = dropout(norm(z))
// Kept:     z and the norm's mean and inverse deviation
// Backward: dz from dy; each table's rows get the sum of dz over the tokens that read them
// Where ranks divide the words, each looks up its own, and zero for the others: the sum is word[id].
// Where they sum the gradient of the words by rows (Pass::word_rows_RD), that is where it goes.

kernels::Dropout dropout_of(const Pass& pass) {
  return pass.dropout_at(0, kernels::DropoutSite::Embedding);
}

}  // namespace

void embedding_block_forward(const Pass& pass, const EmbeddingWeights& weights, const NormActivations& kept,
                             const tensor::TensorView& y_TD) {
  tensor::ConstTensorView looked_up_TD;
  if (pass.group != nullptr) {
    kernels::gather_rows_forward(pass.stream, {.x_TD = weights.word_VD,
                                               .index_M = pass.micro_batch.id_T,
                                               .slice = words_here(pass),
                                               .y_MD = kept.z_TD});
    sum_over_ranks(pass, kept.z_TD);
    looked_up_TD = kept.z_TD;
  }
  kernels::embedding_forward(pass.stream, {.id_T = pass.micro_batch.id_T,
                                           .position_T = pass.micro_batch.position_T,
                                           .segment_T = pass.micro_batch.segment_T,
                                           .word_VD = weights.word_VD,
                                           .looked_up_TD = looked_up_TD,
                                           .position_PD = weights.position_PD,
                                           .segment_GD = weights.segment_GD,
                                           .gamma_D = weights.norm_weight_D,
                                           .beta_D = weights.norm_bias_D,
                                           .epsilon = pass.norm_epsilon(),
                                           .dropout = dropout_of(pass),
                                           .rows = pass.rows(),
                                           .z_TD = kept.z_TD,
                                           .y_TD = y_TD,
                                           .mean_T = kept.mean_T,
                                           .inverse_deviation_T = kept.inverse_deviation_T});
}

void embedding_block_backward(const Pass& pass, const EmbeddingWeights& weights,
                              const EmbeddingGradients& gradients, const NormActivations& kept,
                              const tensor::TensorView& dy_TD) {
  const tensor::TensorView& rows_RD = pass.word_rows_RD;
  // The row behind the last stands for words of other ranks.
  const kernels::RowSlice words =
      rows_RD ? kernels::RowSlice{.whole = rows_RD.size(0) + 1} : words_here(pass);
  kernels::embedding_backward(pass.stream, {.dy_TD = dy_TD,
                                            .z_TD = kept.z_TD,
                                            .mean_T = kept.mean_T,
                                            .inverse_deviation_T = kept.inverse_deviation_T,
                                            .gamma_D = weights.norm_weight_D,
                                            .dropout = dropout_of(pass),
                                            .rows = pass.rows(),
                                            .by_word = pass.micro_batch.by_word,
                                            .words = words,
                                            .by_position = pass.micro_batch.by_position,
                                            .by_segment = pass.micro_batch.by_segment,
                                            .dz_TD = dy_TD,
                                            .dword_VD = rows_RD ? rows_RD : gradients.word_VD,
                                            .dposition_PD = gradients.position_PD,
                                            .dsegment_GD = gradients.segment_GD,
                                            .dgamma_D = gradients.norm_weight_D,
                                            .dbeta_D = gradients.norm_bias_D});
}

}  // namespace plenum::model
