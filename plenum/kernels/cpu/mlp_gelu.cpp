#include "plenum/kernels/cpu/mlp_gelu.h"

#include "plenum/kernels/cpu/column_sums.h"
#include "plenum/kernels/cpu/gemm.h"

namespace plenum::kernels::cpu {

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args) {
  const std::int64_t D = args.w1_FD.size(1);
  const std::int64_t F = args.w1_FD.size(0);
  const tensor::TensorView& u_TF = args.kept_TF ? args.kept_TF : args.h_TF;
  parallel_gemm(stream, {.m = args.x_TD.size(0),
                         .n = F,
                         .k = D,
                         .a = {.data = args.x_TD.data<float>(), .stride = D},
                         .b = {.data = args.w1_FD.data<float>(), .stride = D, .is_transposed = true},
                         .c = u_TF.data<float>(),
                         .c_stride = F,
                         .epilogue = {.bias = args.b1_F.data<float>(), .gelu = args.h_TF.data<float>()}});
}

void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args) {
  const std::int64_t D = args.w2_DF.size(0);
  const std::int64_t F = args.w2_DF.size(1);
  parallel_gemm(stream, {.m = args.dy_TD.size(0),
                         .n = F,
                         .k = D,
                         .a = {.data = args.dy_TD.data<float>(), .stride = D},
                         .b = {.data = args.w2_DF.data<float>(), .stride = F},
                         .c = args.du_TF.data<float>(),
                         .c_stride = F,
                         .epilogue = {.gelu_input = args.kept_TF.data<float>()}});
  add_sum_of_rows(stream, rows_of(args.du_TF), args.db1_F.data<float>());
}

}  // namespace plenum::kernels::cpu
