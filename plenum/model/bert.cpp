#include "plenum/model/bert.h"

#include "plenum/kernels/sum.h"
#include "plenum/model/embedding_block.h"
#include "plenum/model/encoder_layer.h"
#include "plenum/model/masked_language_head.h"
#include "plenum/model/next_sentence_head.h"
#include "plenum/model/zero_gradients.h"
#include "plenum/tensor/copy.h"

namespace plenum::model {
namespace {

// Forward:  embedding, layers, heads
// Kept:     the input of every layer and the last one's output (x_TD), and what each part keeps
// Backward: heads, layers, embedding; dx_TD is the gradient of the rows that the next part to run gave

using base::LayerId;
using kernels::StepNumber;
using tensor::ConstTensorView;
using tensor::TensorView;

bool is_last(const Pass& pass, LayerId end) {
  return static_cast<std::int64_t>(end.index()) == pass.config.num_layers;
}

void layer_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                   const Transients& transients, std::size_t layer) {
  encoder_layer_forward(pass, layer, weights.layers[layer], kept.x_TD[layer].first_rows(pass.num_rows()),
                        kept.layers[layer].of(pass.num_rows()), transients,
                        kept.x_TD[layer + 1].first_rows(pass.num_rows()));
}

void heads_forward(const Pass& pass, const BertWeights& weights, const Activations& kept) {
  const TensorView x_TD = kept.x_TD.back().first_rows(pass.num_rows());
  if (pass.num_masked() > 0) {
    masked_language_head_forward(pass, weights.masked_language, x_TD,
                                 kept.masked_language.of(pass.num_masked()));
  }
  if (pass.num_labelled() > 0) {
    next_sentence_head_forward(pass, weights.next_sentence, x_TD, kept.next_sentence.of(pass.num_labelled()));
  }
}

void heads_backward(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                    const Activations& kept, const Transients& transients, const ConstTensorView& numbers_C,
                    const TensorView& dx_TD) {
  // Rows that no head reads, padding among them, have no gradient.
  tensor::set_zero(pass.stream, dx_TD);
  if (pass.num_masked() > 0) {
    masked_language_head_backward(pass, weights.masked_language, gradients.masked_language,
                                  kept.masked_language.of(pass.num_masked()), transients,
                                  step_number(numbers_C, StepNumber::MaskedScale), dx_TD);
  }
  if (pass.num_labelled() > 0) {
    next_sentence_head_backward(pass, weights.next_sentence, gradients.next_sentence,
                                kept.next_sentence.of(pass.num_labelled()), transients,
                                step_number(numbers_C, StepNumber::NextSentenceScale), dx_TD);
  }
}

}  // namespace

void bert_encoder_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                          const Transients& shared_transients, LayerId first, LayerId end) {
  if (pass.num_rows() == 0) return;
  const Transients transients = shared_transients.of(pass.micro_batch);
  if (first.index() == 0) {
    embedding_block_forward(pass, weights.embedding, kept.embedding.of(pass.num_rows()),
                            kept.x_TD.front().first_rows(pass.num_rows()));
  }
  for (std::size_t layer = first.index(); layer < end.index(); ++layer) {
    layer_forward(pass, weights, kept, transients, layer);
  }
}

void bert_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                  const Transients& transients, LayerId first, LayerId end) {
  bert_encoder_forward(pass, weights, kept, transients, first, end);
  if (pass.num_rows() > 0 && is_last(pass, end)) heads_forward(pass, weights, kept);
}

void add_losses(const Pass& pass, const Activations& kept, const TensorView& numbers_C) {
  if (pass.num_masked() > 0) {
    kernels::add_sum(pass.stream, {.x_N = kept.masked_language.of(pass.num_masked()).loss_M,
                                   .sum_1 = step_number(numbers_C, StepNumber::MaskedLoss)});
  }
  if (pass.num_labelled() > 0) {
    kernels::add_sum(pass.stream, {.x_N = kept.next_sentence.of(pass.num_labelled()).loss_S,
                                   .sum_1 = step_number(numbers_C, StepNumber::NextSentenceLoss)});
  }
}

void bert_backward(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                   const Activations& kept, const Transients& shared_transients,
                   const ConstTensorView& numbers_C, LayerId first, LayerId end) {
  if (pass.accumulate == kernels::Accumulate::No) zero_gradients(pass, gradients, first, end);
  if (pass.num_rows() == 0) return;
  const Transients transients = shared_transients.of(pass.micro_batch);
  const TensorView dx_TD = kept.dx_TD.first_rows(pass.num_rows());
  if (is_last(pass, end)) heads_backward(pass, weights, gradients, kept, transients, numbers_C, dx_TD);
  for (std::size_t layer = end.index(); layer-- > first.index();) {
    if (kept.recompute == Recompute::Full) layer_forward(pass, weights, kept, transients, layer);
    encoder_layer_backward(pass, layer, weights.layers[layer], gradients.layers[layer],
                           kept.x_TD[layer].first_rows(pass.num_rows()),
                           kept.layers[layer].of(pass.num_rows()), transients, kept.recompute, dx_TD);
  }
  if (first.index() == 0) {
    embedding_block_backward(pass, weights.embedding, gradients.embedding, kept.embedding.of(pass.num_rows()),
                             dx_TD);
  }
}

}  // namespace plenum::model
