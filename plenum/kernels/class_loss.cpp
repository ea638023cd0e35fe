#include "plenum/kernels/class_loss.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/class_loss.h"
#include "plenum/kernels/cuda/rows/class_loss.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_rows(const tensor::Stream& stream, tensor::ConstTensorView logits_SC,
                tensor::ConstTensorView label_S) {
  base::check(logits_SC.shape().num_dims() == 2 && logits_SC.size(1) > 0,
              "logits must be a matrix with classes: {}", to_string(logits_SC.shape()));
  check_argument("logits_SC", logits_SC, stream.precision().of(tensor::Role::Activation), logits_SC.shape());
  check_argument("label_S", label_S, tensor::DType::Int32, {logits_SC.size(0)});
  if (stream.device() == tensor::Device::Cuda) return;  // the host does not see the labels
  for (const std::int32_t label : label_S.span<std::int32_t>()) {
    base::check(label >= -1 && label < logits_SC.size(1), "a label is outside the classes: label={} C={}",
                label, logits_SC.size(1));
  }
}

}  // namespace

void class_loss_forward(const tensor::Stream& stream, const ClassLossForward& args) {
  check_rows(stream, args.logits_SC, args.label_S);
  check_argument("loss_S", args.loss_S, args.label_S.shape());
  dispatch<&cpu::class_loss_forward, &cuda::class_loss_forward>(stream, args);
}

void class_loss_backward(const tensor::Stream& stream, const ClassLossBackward& args) {
  check_rows(stream, args.logits_SC, args.label_S);
  check_argument("scale_1", args.scale_1, tensor::DType::Float64, {1});
  check_argument("dlogits_SC", args.dlogits_SC, stream.precision().of(tensor::Role::Activation),
                 args.logits_SC.shape());
  dispatch<&cpu::class_loss_backward, &cuda::class_loss_backward>(stream, args);
}

}  // namespace plenum::kernels
