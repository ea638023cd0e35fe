#include "plenum/model/task_head.h"

#include "plenum/base/check.h"
#include "plenum/kernels/activation.h"
#include "plenum/kernels/class_loss.h"
#include "plenum/kernels/dropout_rows.h"
#include "plenum/kernels/group_loss.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/squared_loss.h"
#include "plenum/model/head_dense.h"
#include "plenum/model/read_rows.h"

namespace plenum::model {

// M labels, D width, W logits in a row. Only the rows that the objective reads come here.
//
// Forward:  y = tanh(x Wp + b), or x where there is no transform;  logits = dropout(y) W + b;  losses
// Kept:     y and dropout(y), where they are not what they are made of; logits
// Backward: from the last to the first

using describe::LossKind;
using tensor::ConstTensorView;
using tensor::TensorView;

namespace {

LossKind loss_of(const Pass& pass, std::size_t objective) {
  return pass.model.heads[objective].objective.loss;
}

/// What the output map reads.
ConstTensorView output_input(const Pass& pass, std::size_t objective, const ConstTensorView& x_MD,
                             const HeadActivations& kept) {
  if (pass.dropout_of_head(objective).is_on()) return kept.dropped_MD;
  return pass.model.heads[objective].transform ? kept.y_MD : x_MD;
}

void drop_rows(const Pass& pass, std::size_t objective, const ConstTensorView& y_MD,
               const TensorView& dropped_MD) {
  kernels::dropout_rows(pass.stream, {.x_TD = y_MD,
                                      .dropout = pass.dropout_of_head(objective),
                                      .rows = identities_of_objective(pass, objective),
                                      .y_TD = dropped_MD});
}

void losses_forward(const Pass& pass, std::size_t objective, const HeadActivations& kept) {
  const TensorView& logits_MW = kept.logits_MW;
  const ConstTensorView& label_M = pass.micro_batch.objectives[objective].label_M;
  switch (loss_of(pass, objective)) {
    case LossKind::ClassCrossEntropy:
      return kernels::class_loss_forward(pass.stream,
                                         {.logits_SC = logits_MW, .label_S = label_M, .loss_S = kept.loss_M});
    case LossKind::SquaredError:
      return kernels::squared_loss_forward(
          pass.stream, {.logits_M1 = logits_MW, .label_M = label_M, .loss_M = kept.loss_M});
    case LossKind::GroupCrossEntropy:
      return kernels::group_loss_forward(pass.stream,
                                         {.logits_MC = logits_MW, .label_M = label_M, .loss_M = kept.loss_M});
    case LossKind::WordCrossEntropy:
      break;
  }
  throw base::InternalError("words have a head of their own");
}

/// Gradients take the logits' place.
void losses_backward(const Pass& pass, std::size_t objective, const ConstTensorView& scale_1,
                     const TensorView& logits_MW) {
  const ConstTensorView& label_M = pass.micro_batch.objectives[objective].label_M;
  switch (loss_of(pass, objective)) {
    case LossKind::ClassCrossEntropy:
      return kernels::class_loss_backward(
          pass.stream,
          {.logits_SC = logits_MW, .label_S = label_M, .scale_1 = scale_1, .dlogits_SC = logits_MW});
    case LossKind::SquaredError:
      return kernels::squared_loss_backward(
          pass.stream,
          {.logits_M1 = logits_MW, .label_M = label_M, .scale_1 = scale_1, .dlogits_M1 = logits_MW});
    case LossKind::GroupCrossEntropy:
      return kernels::group_loss_backward(
          pass.stream,
          {.logits_MC = logits_MW, .label_M = label_M, .scale_1 = scale_1, .dlogits_MC = logits_MW});
    case LossKind::WordCrossEntropy:
      break;
  }
  throw base::InternalError("words have a head of their own");
}

}  // namespace

void task_head_logits(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                      const ConstTensorView& x_MD, const HeadActivations& kept) {
  ConstTensorView y_MD = x_MD;
  if (pass.model.heads[objective].transform) {
    head_dense_forward(pass, weights, x_MD, kept.y_MD);
    kernels::tanh_forward(pass.stream, {.x = kept.y_MD, .y = kept.y_MD});
    y_MD = kept.y_MD;
  }
  if (pass.dropout_of_head(objective).is_on()) drop_rows(pass, objective, y_MD, kept.dropped_MD);
  kernels::linear_forward(pass.stream, {.x_TD = output_input(pass, objective, x_MD, kept),
                                        .w_ED = weights.output_weight,
                                        .b_E = weights.output_bias,
                                        .y_TE = kept.logits_MW});
}

void task_head_forward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                       const ConstTensorView& x_MD, const HeadActivations& kept) {
  task_head_logits(pass, objective, weights, x_MD, kept);
  losses_forward(pass, objective, kept);
}

void task_head_backward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                        const HeadGradients& gradients, const ConstTensorView& x_MD,
                        const HeadActivations& kept, const ConstTensorView& loss_scale_1,
                        const TensorView& dy_MD, const TensorView& dx_MD) {
  // The bias shifts all logits of a group's column alike, which softmax takes back: its gradient is zero, and
  // of the rounding that would come out Adam would make steps.
  const bool has_bias_gradient = loss_of(pass, objective) != LossKind::GroupCrossEntropy;
  const bool has_transform = pass.model.heads[objective].transform.has_value();
  const TensorView dlogits_MW = kept.logits_MW;
  losses_backward(pass, objective, loss_scale_1, dlogits_MW);
  kernels::linear_backward_weight(pass.stream,
                                  {.x_TD = output_input(pass, objective, x_MD, kept),
                                   .dy_TE = dlogits_MW,
                                   .dw_ED = gradients.output_weight,
                                   .db_E = has_bias_gradient ? gradients.output_bias : TensorView(),
                                   .accumulate = pass.accumulate});
  const TensorView& dinput_MD = has_transform ? dy_MD : dx_MD;
  kernels::linear_backward_input(pass.stream,
                                 {.dy_TE = dlogits_MW, .w_ED = weights.output_weight, .dx_TD = dinput_MD});
  if (pass.dropout_of_head(objective).is_on()) drop_rows(pass, objective, dinput_MD, dinput_MD);
  if (!has_transform) return;
  kernels::tanh_backward(pass.stream, {.y = kept.y_MD, .dy = dy_MD, .dx = dy_MD});
  head_dense_backward(pass, weights, gradients, x_MD, dy_MD, dx_MD);
}

}  // namespace plenum::model
