#include "plenum/kernels/cpu/linear.h"

#include "plenum/kernels/cpu/column_sums.h"
#include "plenum/kernels/cpu/gemm.h"

namespace plenum::kernels::cpu {
void linear_forward(const tensor::Stream& stream, const LinearForward& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  parallel_gemm(stream, {.m = args.x_TD.size(0),
                         .n = E,
                         .k = D,
                         .a = {.data = args.x_TD.data<float>(), .stride = D},
                         .b = {.data = args.w_ED.data<float>(), .stride = D, .is_transposed = true},
                         .c = args.y_TE.data<float>(),
                         .c_stride = E,
                         .epilogue = {.bias = args.b_E ? args.b_E.data<float>() : nullptr}});
}

void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  parallel_gemm(stream, {.m = args.dy_TE.size(0),
                         .n = D,
                         .k = E,
                         .a = {.data = args.dy_TE.data<float>(), .stride = E},
                         .b = {.data = args.w_ED.data<float>(), .stride = D},
                         .c = args.dx_TD.data<float>(),
                         .c_stride = D,
                         .accumulate = args.accumulate});
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const std::int64_t D = args.x_TD.size(1);
  const std::int64_t E = args.dy_TE.size(1);
  parallel_gemm(stream, {.m = E,
                         .n = D,
                         .k = args.x_TD.size(0),
                         .a = {.data = args.dy_TE.data<float>(), .stride = E, .is_transposed = true},
                         .b = {.data = args.x_TD.data<float>(), .stride = D},
                         .c = args.dw_ED.data<float>(),
                         .c_stride = D,
                         .accumulate = args.accumulate});
  if (args.db_E) add_sum_of_rows(stream, rows_of(args.dy_TE), args.db_E.data<float>());
}

}  // namespace plenum::kernels::cpu
