#include "plenum/kernels/group_loss.h"

#include "plenum/batch/group_label.h"
#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/group_loss.h"
#include "plenum/kernels/cuda/rows/group_loss.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_groups(const tensor::Stream& stream, tensor::ConstTensorView logits_MC,
                  tensor::ConstTensorView label_M) {
  base::check(logits_MC.shape().num_dims() == 2 && logits_MC.size(1) >= 1 &&
                  logits_MC.size(1) <= batch::GroupLabel::kMostColumns,
              "logits of groups must be a matrix of 1 to {} columns: {}", batch::GroupLabel::kMostColumns,
              to_string(logits_MC.shape()));
  check_argument("logits_MC", logits_MC, stream.precision().of(tensor::Role::Activation), logits_MC.shape());
  check_argument("label_M", label_M, tensor::DType::Int32, {logits_MC.size(0)});
  if (stream.device() == tensor::Device::Cuda) return;  // the host does not see the labels
  batch::check_group_labels(label_M.span<std::int32_t>(), static_cast<int>(logits_MC.size(1)));
}

}  // namespace

void group_loss_forward(const tensor::Stream& stream, const GroupLossForward& args) {
  check_groups(stream, args.logits_MC, args.label_M);
  check_argument("loss_M", args.loss_M, args.label_M.shape());
  dispatch<&cpu::group_loss_forward, &cuda::group_loss_forward>(stream, args);
}

void group_loss_backward(const tensor::Stream& stream, const GroupLossBackward& args) {
  check_groups(stream, args.logits_MC, args.label_M);
  check_argument("scale_1", args.scale_1, tensor::DType::Float64, {1});
  check_argument("dlogits_MC", args.dlogits_MC, stream.precision().of(tensor::Role::Activation),
                 args.logits_MC.shape());
  dispatch<&cpu::group_loss_backward, &cuda::group_loss_backward>(stream, args);
}

}  // namespace plenum::kernels
