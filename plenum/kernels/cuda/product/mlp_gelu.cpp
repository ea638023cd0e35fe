#include "plenum/kernels/cuda/product/mlp_gelu.h"

#include <algorithm>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/device_attribute.h"
#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/cuda/product/mlp_gelu_sm90.h"
#include "plenum/kernels/cuda/rows/activation.h"
#include "plenum/kernels/cuda/rows/column_sums.h"
#include "plenum/kernels/cuda/rows/gelu_gradient.h"

namespace plenum::kernels::cuda {
namespace {

using tensor::BFloat16;

/// What forward leaves for backward.
enum class Kept {
  Input,      ///< u; GELU is a pass behind forward's product, its derivative one behind backward's
  Derivative  ///< gelu'(u), by the kernels of mlp_gelu_sm90.h
};

/// Both directions ask here, and nothing but the shape and the GPU decides. With fewer rows than kLeastRows
/// the library was as fast in both together, or faster (docs/decisions/cuda.md).
Kept kept_of(std::int64_t T, std::int64_t D, std::int64_t F) {
  constexpr std::int64_t kLeastRows = 1024;
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
  const bool is_for_sm90 =
      T >= kLeastRows && T <= kMostRows && D > 0 && D % 64 == 0 && F > 0 && F % 64 == 0 && is_hopper();
  return is_for_sm90 ? Kept::Derivative : Kept::Input;
}

void forward_by_sm90(const tensor::Stream& stream, const MlpGeluForward& args) {
  tensor::check_cuda(
      mlp_gelu_forward_sm90({.m = args.x_TD.size(0),
                             .n = args.w1_FD.size(0),
                             .k = args.w1_FD.size(1),
                             .x = bfloat16_data(args.x_TD),
                             .w = bfloat16_data(args.w1_FD),
                             .bias = bfloat16_data(args.b1_F),
                             .gelu = bfloat16_data(args.h_TF),
                             .derivative = args.kept_TF ? bfloat16_data(args.kept_TF) : nullptr},
                            stream.cuda().handle()),
      "multiply matrices");
}

void forward_by_library(const tensor::Stream& stream, const MlpGeluForward& args) {
  const std::int64_t D = args.w1_FD.size(1);
  const std::int64_t F = args.w1_FD.size(0);
  const tensor::TensorView& u_TF = args.kept_TF ? args.kept_TF : args.h_TF;
  matmul(stream, {.m = args.x_TD.size(0),
                  .n = F,
                  .k = D,
                  .a = {.data = args.x_TD.data<BFloat16>(), .stride = D},
                  .b = {.data = args.w1_FD.data<BFloat16>(), .stride = D, .is_transposed = true},
                  .c = u_TF.raw(),
                  .c_stride = F,
                  .bias = args.b1_F.data<BFloat16>()});
  gelu_forward(stream, {.x = u_TF, .y = args.h_TF});
}

void backward_by_sm90(const tensor::Stream& stream, const MlpGeluBackward& args) {
  const std::int64_t T = args.dy_TD.size(0);
  const std::int64_t F = args.w2_DF.size(1);
  check_scratch(stream, gelu_block_sums_bytes(T, F));
  auto* const sums = reinterpret_cast<float*>(stream.scratch().data());
  tensor::check_cuda(mlp_gelu_backward_sm90({.m = T,
                                             .n = F,
                                             .k = args.w2_DF.size(0),
                                             .dy = bfloat16_data(args.dy_TD),
                                             .w = bfloat16_data(args.w2_DF),
                                             .derivative = bfloat16_data(args.kept_TF),
                                             .du = bfloat16_data(args.du_TF),
                                             .sums = sums},
                                            stream.cuda().handle()),
                     "multiply matrices");
  add_block_sums(stream, sums, num_gelu_block_sums(T), static_cast<int>(F), args.db1_F.data<float>());
}

void backward_by_library(const tensor::Stream& stream, const MlpGeluBackward& args) {
  const std::int64_t D = args.w2_DF.size(0);
  const std::int64_t F = args.w2_DF.size(1);
  matmul(stream, {.m = args.dy_TD.size(0),
                  .n = F,
                  .k = D,
                  .a = {.data = args.dy_TD.data<BFloat16>(), .stride = D},
                  .b = {.data = args.w2_DF.data<BFloat16>(), .stride = F},
                  .c = args.du_TF.raw(),
                  .c_stride = F});
  // A pass of its own: the library's epilogues for this cost more (docs/decisions/cuda.md).
  multiply_gelu_derivative(stream, args.kept_TF, args.du_TF, args.db1_F.data<float>());
}

}  // namespace

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args) {
  const Kept kept = kept_of(args.x_TD.size(0), args.w1_FD.size(1), args.w1_FD.size(0));
  if (kept == Kept::Derivative) return forward_by_sm90(stream, args);
  forward_by_library(stream, args);
}

void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args) {
  const Kept kept = kept_of(args.dy_TD.size(0), args.w2_DF.size(0), args.w2_DF.size(1));
  if (kept == Kept::Derivative) return backward_by_sm90(stream, args);
  backward_by_library(stream, args);
}

}  // namespace plenum::kernels::cuda
