#include "plenum/kernels/cuda/linear.h"

#include "plenum/kernels/cuda/column_sums.h"
#include "plenum/kernels/cuda/gelu_gradient.h"
#include "plenum/kernels/cuda/matmul.h"

namespace plenum::kernels::cuda {
namespace {

using tensor::BFloat16;

/// Room to measure weight gradients of up to 4096 x 1024, BERT-large's.
constexpr std::size_t kLargestGradientBytes = std::size_t{4096} * 1024 * sizeof(float);

const BFloat16* data_or_null(const tensor::ConstTensorView& view) {
  return view ? view.data<BFloat16>() : nullptr;
}

}  // namespace

void linear_forward(const tensor::Stream& stream, const LinearForward& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  matmul(stream, {.m = args.x_TD.size(0),
                  .n = E,
                  .k = D,
                  .a = {.data = args.x_TD.data<BFloat16>(), .stride = D},
                  .b = {.data = args.w_ED.data<BFloat16>(), .stride = D, .is_transposed = true},
                  .c = args.y_TE.raw(),
                  .c_stride = E,
                  .epilogue = {.bias = data_or_null(args.b_E),
                               .gelu = args.gelu_TE ? args.gelu_TE.data<BFloat16>() : nullptr}});
}

void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  matmul(stream, {.m = args.dy_TE.size(0),
                  .n = D,
                  .k = E,
                  .a = {.data = args.dy_TE.data<BFloat16>(), .stride = E},
                  .b = {.data = args.w_ED.data<BFloat16>(), .stride = D},
                  .c = args.dx_TD.raw(),
                  .c_stride = D,
                  .accumulate = args.accumulate});
  // A pass of its own: the library's epilogues for this cost more (docs/decisions/cuda.md).
  if (args.gelu_input_TD) {
    multiply_gelu_derivative(stream, args.gelu_input_TD, args.dx_TD,
                             args.db_D ? args.db_D.data<float>() : nullptr);
  }
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const std::int64_t D = args.x_TD.size(1);
  const std::int64_t E = args.dy_TE.size(1);
  const std::int64_t T = args.x_TD.size(0);
  if (T == 0) return;
  matmul(stream, {.m = E,
                  .n = D,
                  .k = T,
                  .a = {.data = args.dy_TE.data<BFloat16>(), .stride = E, .is_transposed = true},
                  .b = {.data = args.x_TD.data<BFloat16>(), .stride = D},
                  .c = args.dw_ED.raw(),
                  .c_dtype = tensor::DType::Float32,
                  .c_stride = D,
                  .accumulate = Accumulate::Yes});
  if (args.db_E) add_column_sums(stream, args.dy_TE, args.db_E.data<float>());
}

std::size_t linear_scratch_bytes() {
  return matmul_scratch_bytes(kLargestGradientBytes);
}

}  // namespace plenum::kernels::cuda
