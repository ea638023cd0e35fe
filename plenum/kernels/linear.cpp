#include "plenum/kernels/linear.h"

#include "plenum/base/check.h"
#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/linear.h"
#include "plenum/kernels/cuda/product/linear.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

/// The shape of a weight or its gradient, which the other arguments must fit.
tensor::Shape checked_weight(std::string_view name, const tensor::ConstTensorView& weight,
                             tensor::DType dtype) {
  base::check(weight.shape().num_dims() == 2, "{} is a matrix, not of shape {}", name,
              to_string(weight.shape()));
  check_argument(name, weight, dtype, weight.shape());
  return weight.shape();
}

}  // namespace

void linear_forward(const tensor::Stream& stream, const LinearForward& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  const tensor::Shape w_ED = checked_weight("w_ED", args.w_ED, weight_dtype);
  const std::int64_t T = args.y_TE.size(0);
  check_argument("x_TD", args.x_TD, dtype, {T, w_ED[1]});
  check_argument("y_TE", args.y_TE, dtype, {T, w_ED[0]});
  if (args.b_E) check_argument("b_E", args.b_E, weight_dtype, {w_ED[0]});
  dispatch<&cpu::linear_forward, &cuda::linear_forward>(stream, args);
}

void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  const tensor::Shape w_ED = checked_weight("w_ED", args.w_ED, weight_dtype);
  const std::int64_t T = args.dx_TD.size(0);
  check_argument("dy_TE", args.dy_TE, dtype, {T, w_ED[0]});
  check_argument("dx_TD", args.dx_TD, dtype, {T, w_ED[1]});
  dispatch<&cpu::linear_backward_input, &cuda::linear_backward_input>(stream, args);
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::Shape dw_ED = checked_weight("dw_ED", args.dw_ED, tensor::DType::Float32);
  const std::int64_t T = args.x_TD.size(0);
  check_argument("x_TD", args.x_TD, dtype, {T, dw_ED[1]});
  check_argument("dy_TE", args.dy_TE, dtype, {T, dw_ED[0]});
  if (args.db_E) check_argument("db_E", args.db_E, {dw_ED[0]});
  dispatch<&cpu::linear_backward_weight, &cuda::linear_backward_weight>(stream, args);
}

}  // namespace plenum::kernels
