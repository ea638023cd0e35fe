#include "plenum/kernels/class_loss.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/class_loss.h"

namespace plenum::kernels {
namespace {

void check_rows(tensor::ConstTensorView logits_SC, tensor::ConstTensorView label_S) {
  base::check(logits_SC.shape().num_dims() == 2 && logits_SC.size(1) > 0,
              "logits must be a matrix with classes: {}", to_string(logits_SC.shape()));
  check_argument("logits_SC", logits_SC, logits_SC.shape());
  check_argument("label_S", label_S, tensor::DType::Int32, {logits_SC.size(0)});
  for (const std::int32_t label : label_S.span<std::int32_t>()) {
    base::check(label >= 0 && label < logits_SC.size(1), "a label is outside the classes: label={} C={}",
                label, logits_SC.size(1));
  }
}

}  // namespace

void class_loss_forward(const tensor::Stream&, const ClassLossForward& args) {
  check_rows(args.logits_SC, args.label_S);
  check_argument("loss_S", args.loss_S, args.label_S.shape());
  cpu::class_loss_forward(args);
}

void class_loss_backward(const tensor::Stream&, const ClassLossBackward& args) {
  check_rows(args.logits_SC, args.label_S);
  check_argument("dlogits_SC", args.dlogits_SC, args.logits_SC.shape());
  cpu::class_loss_backward(args);
}

}  // namespace plenum::kernels
