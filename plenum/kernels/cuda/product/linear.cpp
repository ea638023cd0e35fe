#include "plenum/kernels/cuda/product/linear.h"

#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/cuda/rows/column_sums.h"

namespace plenum::kernels::cuda {
namespace {

using tensor::BFloat16;

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
                  .bias = data_or_null(args.b_E)});
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
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const std::int64_t D = args.x_TD.size(1);
  const std::int64_t E = args.dy_TE.size(1);
  matmul(stream, {.m = E,
                  .n = D,
                  .k = args.x_TD.size(0),
                  .a = {.data = args.dy_TE.data<BFloat16>(), .stride = E, .is_transposed = true},
                  .b = {.data = args.x_TD.data<BFloat16>(), .stride = D},
                  .c = args.dw_ED.raw(),
                  .c_dtype = tensor::DType::Float32,
                  .c_stride = D,
                  .accumulate = args.accumulate});
  if (args.db_E) add_sum_of_rows(stream, args.dy_TE, args.db_E.data<float>());
}

}  // namespace plenum::kernels::cuda
