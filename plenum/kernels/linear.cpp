#include "plenum/kernels/linear.h"

#include "plenum/base/check.h"
#include "plenum/kernels/cpu/linear.h"

namespace plenum::kernels {
namespace {

void check_shape(const tensor::ConstTensorView& view, const tensor::Shape& expected, const char* name) {
  base::check(view.shape() == expected, "{} of a linear map has a wrong shape: {} instead of {}", name,
              to_string(view.shape()), to_string(expected));
}

}  // namespace

void linear_forward(const tensor::Stream& stream, const LinearForward& args) {
  const tensor::Shape w_ED = args.w_ED.shape();
  base::check(w_ED.num_dims() == 2, "the weight of a linear map is a matrix: {}", to_string(w_ED));
  const std::int64_t T = args.y_TE.size(0);
  check_shape(args.x_TD, {T, w_ED[1]}, "x");
  check_shape(args.y_TE, {T, w_ED[0]}, "y");
  if (args.b_E) check_shape(args.b_E, {w_ED[0]}, "b");
  if (args.gelu_TE) check_shape(args.gelu_TE, {T, w_ED[0]}, "gelu");
  cpu::linear_forward(stream, args);
}

void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args) {
  const tensor::Shape w_ED = args.w_ED.shape();
  base::check(w_ED.num_dims() == 2, "the weight of a linear map is a matrix: {}", to_string(w_ED));
  const std::int64_t T = args.dx_TD.size(0);
  check_shape(args.dy_TE, {T, w_ED[0]}, "dy");
  check_shape(args.dx_TD, {T, w_ED[1]}, "dx");
  if (args.gelu_input_TD) {
    check_shape(args.gelu_input_TD, {T, w_ED[1]}, "gelu_input");
    base::check(args.accumulate == Accumulate::No, "a gradient through GELU overwrites dx: {}",
                to_string(w_ED));
  }
  cpu::linear_backward_input(stream, args);
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const tensor::Shape dw_ED = args.dw_ED.shape();
  base::check(dw_ED.num_dims() == 2, "the weight of a linear map is a matrix: {}", to_string(dw_ED));
  const std::int64_t T = args.x_TD.size(0);
  check_shape(args.x_TD, {T, dw_ED[1]}, "x");
  check_shape(args.dy_TE, {T, dw_ED[0]}, "dy");
  if (args.db_E) check_shape(args.db_E, {dw_ED[0]}, "db");
  cpu::linear_backward_weight(stream, args);
}

std::size_t linear_scratch_bytes() {
  return cpu::linear_scratch_bytes();
}

}  // namespace plenum::kernels
