#include "plenum/kernels/mlp_gelu.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/mlp_gelu.h"
#include "plenum/kernels/cuda/product/mlp_gelu.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  const std::int64_t T = args.x_TD.size(0);
  const std::int64_t D = args.x_TD.size(1);
  const std::int64_t F = args.h_TF.size(1);
  check_argument("x_TD", args.x_TD, dtype, {T, D});
  check_argument("w1_FD", args.w1_FD, weight_dtype, {F, D});
  check_argument("b1_F", args.b1_F, weight_dtype, {F});
  check_argument("h_TF", args.h_TF, dtype, {T, F});
  if (args.kept_TF) check_argument("kept_TF", args.kept_TF, dtype, {T, F});
  if (stream.device() == tensor::Device::Cuda) {
    check_alignment("x_TD", args.x_TD);
    check_alignment("w1_FD", args.w1_FD);
    check_alignment("b1_F", args.b1_F);
    check_alignment("h_TF", args.h_TF);
    check_alignment("kept_TF", args.kept_TF);
  }
  dispatch<&cpu::mlp_gelu_forward, &cuda::mlp_gelu_forward>(stream, args);
}

void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  const std::int64_t T = args.dy_TD.size(0);
  const std::int64_t D = args.dy_TD.size(1);
  const std::int64_t F = args.du_TF.size(1);
  check_argument("dy_TD", args.dy_TD, dtype, {T, D});
  check_argument("w2_DF", args.w2_DF, weight_dtype, {D, F});
  check_argument("kept_TF", args.kept_TF, dtype, {T, F});
  check_argument("du_TF", args.du_TF, dtype, {T, F});
  check_argument("db1_F", args.db1_F, {F});
  if (stream.device() == tensor::Device::Cuda) {
    check_alignment("dy_TD", args.dy_TD);
    check_alignment("w2_DF", args.w2_DF);
    check_alignment("kept_TF", args.kept_TF);
    check_alignment("du_TF", args.du_TF);
  }
  dispatch<&cpu::mlp_gelu_backward, &cuda::mlp_gelu_backward>(stream, args);
}

}  // namespace plenum::kernels
