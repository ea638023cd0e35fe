#include "plenum/kernels/squared_loss.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/squared_loss.h"
#include "plenum/kernels/cuda/rows/squared_loss.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_logits(const tensor::Stream& stream, tensor::ConstTensorView logits_M1,
                  tensor::ConstTensorView label_M) {
  base::check(label_M.shape().num_dims() == 1, "labels must be a vector: {}", to_string(label_M.shape()));
  check_argument("logits_M1", logits_M1, stream.precision().of(tensor::Role::Activation),
                 {label_M.size(0), 1});
  check_argument("label_M", label_M, tensor::DType::Int32, label_M.shape());
}

}  // namespace

void squared_loss_forward(const tensor::Stream& stream, const SquaredLossForward& args) {
  check_logits(stream, args.logits_M1, args.label_M);
  check_argument("loss_M", args.loss_M, args.label_M.shape());
  dispatch<&cpu::squared_loss_forward, &cuda::squared_loss_forward>(stream, args);
}

void squared_loss_backward(const tensor::Stream& stream, const SquaredLossBackward& args) {
  check_logits(stream, args.logits_M1, args.label_M);
  check_argument("scale_1", args.scale_1, tensor::DType::Float64, {1});
  check_argument("dlogits_M1", args.dlogits_M1, stream.precision().of(tensor::Role::Activation),
                 args.logits_M1.shape());
  dispatch<&cpu::squared_loss_backward, &cuda::squared_loss_backward>(stream, args);
}

}  // namespace plenum::kernels
