#include "plenum/model/bert.h"

#include "plenum/kernels/sum.h"
#include "plenum/model/embedding_block.h"
#include "plenum/model/encoder_layer.h"
#include "plenum/model/read_rows.h"
#include "plenum/model/task_head.h"
#include "plenum/model/word_head.h"
#include "plenum/model/zero_gradients.h"

namespace plenum::model {
namespace {

// Forward:  embedding, layers, heads
// Kept:     the input of every layer (x_TD), what heads read of the last one's output (read_RD), and what
//           each part keeps
// Backward: heads, layers, embedding; dx_TD is the gradient of the rows that the next part to run gave, from
//           the heads it is dread_RD

using base::LayerId;
using tensor::ConstTensorView;
using tensor::TensorView;

bool ends_with_heads(const Pass& pass, LayerId end) {
  return pass.is_last(end.index() - 1);
}

/// A pass that no head reads anything of has no loss and no gradient.
bool is_empty(const Pass& pass) {
  return pass.num_read() == 0;
}

LayerRows rows_of(const Pass& pass, std::size_t layer) {
  return {.attended = pass.num_rows(),
          .behind = pass.is_last(layer) ? pass.num_read() : pass.num_rows(),
          .read = pass.num_read()};
}

/// Where a layer's output is kept: as the next one's input, if that is of the same stage.
TensorView output_in_stage(const Pass& pass, const Activations& kept, std::size_t layer) {
  return pass.is_last(layer) ? kept.read_RD : kept.x_TD[layer + 1];
}

void layer_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                   const Transients& transients, std::size_t layer, const TensorView& y_RD) {
  const LayerRows rows = rows_of(pass, layer);
  encoder_layer_forward(pass, layer, weights.layers[layer], kept.x_TD[layer].first_rows(rows.attended),
                        kept.layers[layer].of(rows), transients.of(rows, pass.micro_batch.num_labels()),
                        y_RD.first_rows(rows.behind));
}

bool is_of_words(const Pass& pass, std::size_t objective) {
  return pass.model.heads[objective].objective.loss == describe::LossKind::WordCrossEntropy;
}

void heads_forward(const Pass& pass, const BertWeights& weights, const Activations& kept) {
  for (std::size_t i = 0; i < pass.model.heads.size(); ++i) {
    if (pass.num_labels(i) == 0) continue;
    const auto forward = is_of_words(pass, i) ? word_head_forward : task_head_forward;
    forward(pass, i, weights.heads[i], rows_of_objective(pass, kept.read_RD, i),
            kept.heads[i].of(pass.num_labels(i)));
  }
}

void heads_backward(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                    const Activations& kept, const Transients& transients, const ConstTensorView& scalars_C) {
  for (std::size_t i = 0; i < pass.model.heads.size(); ++i) {
    if (pass.num_labels(i) == 0) continue;
    const auto backward = is_of_words(pass, i) ? word_head_backward : task_head_backward;
    backward(pass, i, weights.heads[i], gradients.heads[i], rows_of_objective(pass, kept.read_RD, i),
             kept.heads[i].of(pass.num_labels(i)), step_scalar(scalars_C, kernels::loss_scale_of(i)),
             transients.dy_MD[i], rows_of_objective(pass, transients.dread_RD, i));
  }
}

/// Backward with or without the gradients of the maps' weights.
void backward_of(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                 const Activations& kept, const Transients& transients, const ConstTensorView& scalars_C,
                 MapGradients map_gradients, LayerId first, LayerId end) {
  if (pass.accumulate == kernels::Accumulate::No) zero_gradients(pass, gradients, map_gradients, first, end);
  if (is_empty(pass)) return;
  const TensorView dx_TD = kept.dx_TD.first_rows(pass.num_rows());
  TensorView dy_RD = dx_TD;
  if (ends_with_heads(pass, end)) {
    const Transients of_heads = transients.of(rows_of(pass, end.index() - 1), pass.micro_batch.num_labels());
    heads_backward(pass, weights, gradients, kept, of_heads, scalars_C);
    dy_RD = of_heads.dread_RD;
  }
  for (std::size_t layer = end.index(); layer-- > first.index();) {
    const LayerRows rows = rows_of(pass, layer);
    encoder_layer_backward(pass, layer, weights.layers[layer], gradients.layers[layer],
                           kept.x_TD[layer].first_rows(rows.attended), kept.layers[layer].of(rows),
                           kept.errors[layer].of(rows), transients.of(rows, pass.micro_batch.num_labels()),
                           map_gradients, dy_RD, dx_TD);
    dy_RD = dx_TD;
  }
  if (first.index() == 0) {
    embedding_block_backward(pass, weights.embedding, gradients.embedding, kept.embedding.of(pass.num_rows()),
                             dx_TD);
  }
}

}  // namespace

void bert_encoder_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                          const Transients& transients, LayerId first, LayerId end) {
  if (is_empty(pass)) return;
  if (first.index() == 0) {
    embedding_block_forward(pass, weights.embedding, kept.embedding.of(pass.num_rows()),
                            kept.x_TD.front().first_rows(pass.num_rows()));
  }
  for (std::size_t layer = first.index(); layer < end.index(); ++layer) {
    TensorView y_RD = output_in_stage(pass, kept, layer);
    if (!y_RD) y_RD = pass.output_TD ? pass.output_TD : kept.y_TD;
    layer_forward(pass, weights, kept, transients, layer, y_RD);
  }
}

void bert_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                  const Transients& transients, LayerId first, LayerId end) {
  bert_encoder_forward(pass, weights, kept, transients, first, end);
  if (ends_with_heads(pass, end)) heads_forward(pass, weights, kept);
}

void add_losses(const Pass& pass, const Activations& kept, const TensorView& scalars_C) {
  for (std::size_t i = 0; i < pass.model.heads.size(); ++i) {
    if (pass.num_labels(i) == 0) continue;
    kernels::add_sum(pass.stream, {.x_N = kept.heads[i].of(pass.num_labels(i)).loss_M,
                                   .sum_1 = step_scalar(scalars_C, kernels::loss_of(i))});
  }
}

void bert_recompute(const Pass& pass, const BertWeights& weights, const Activations& kept,
                    const Transients& transients, schedule::Recomputation what, LayerId layer) {
  if (is_empty(pass)) return;
  if (what == schedule::Recomputation::Full) {
    // What a stage gives the next may have gone; nobody reads it again.
    const TensorView y_RD = output_in_stage(pass, kept, layer.index());
    return layer_forward(pass, weights, kept, transients, layer.index(), y_RD ? y_RD : transients.dbranch_RD);
  }
  const LayerRows rows = rows_of(pass, layer.index());
  recompute_mlp(pass, weights.layers[layer.index()], kept.layers[layer.index()].of(rows),
                transients.of(rows, pass.micro_batch.num_labels()));
}

void bert_backward(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                   const Activations& kept, const Transients& transients, const ConstTensorView& scalars_C,
                   LayerId first, LayerId end) {
  backward_of(pass, weights, gradients, kept, transients, scalars_C, MapGradients::Now, first, end);
}

void bert_input_gradient(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                         const Activations& kept, const Transients& transients,
                         const ConstTensorView& scalars_C, LayerId first, LayerId end) {
  backward_of(pass, weights, gradients, kept, transients, scalars_C, MapGradients::Later, first, end);
}

void bert_weight_gradient(const Pass& pass, const BertGradients& gradients, const Activations& kept,
                          const Transients& transients, LayerId first, LayerId end) {
  if (pass.accumulate == kernels::Accumulate::No) zero_map_gradients(pass, gradients, first, end);
  if (is_empty(pass)) return;
  for (std::size_t layer = end.index(); layer-- > first.index();) {
    const LayerRows rows = rows_of(pass, layer);
    encoder_layer_weight_gradient(pass, layer, gradients.layers[layer],
                                  kept.x_TD[layer].first_rows(rows.attended), kept.layers[layer].of(rows),
                                  kept.errors[layer].of(rows),
                                  transients.of(rows, pass.micro_batch.num_labels()));
  }
}

}  // namespace plenum::model
