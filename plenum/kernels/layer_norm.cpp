#include "plenum/kernels/layer_norm.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/check_row_identities.h"
#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/layer_norm.h"
#include "plenum/kernels/cuda/rows/layer_norm.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void layer_norm_forward(const tensor::Stream& stream, const LayerNormForward& args) {
  const tensor::Shape& shape = args.x_TD.shape();
  base::check(shape.num_dims() == 2 && shape[1] > 0, "x_TD must be rows of a width: {}", to_string(shape));
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::Shape of_row = {shape[1]};
  const tensor::Shape of_rows = {shape[0]};
  check_argument("x_TD", args.x_TD, dtype, shape);
  if (args.residual_TD) check_argument("residual_TD", args.residual_TD, dtype, shape);
  check_argument("gamma_D", args.gamma_D, of_row);
  check_argument("beta_D", args.beta_D, of_row);
  if (args.z_TD) check_argument("z_TD", args.z_TD, dtype, shape);
  check_argument("y_TD", args.y_TD, dtype, shape);
  if (args.mean_T) check_argument("mean_T", args.mean_T, of_rows);
  if (args.inverse_deviation_T) check_argument("inverse_deviation_T", args.inverse_deviation_T, of_rows);
  check_row_identities(args.dropout, args.rows, shape[0]);
  check_scratch(stream, layer_norm_scratch_bytes(stream.device(), shape[1]));
  dispatch<&cpu::layer_norm_forward, &cuda::layer_norm_forward>(stream, args);
}

void layer_norm_backward(const tensor::Stream& stream, const LayerNormBackward& args) {
  const tensor::Shape& shape = args.z_TD.shape();
  base::check(shape.num_dims() == 2 && shape[1] > 0, "z_TD must be rows of a width: {}", to_string(shape));
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::Shape of_row = {shape[1]};
  const tensor::Shape of_rows = {shape[0]};
  check_argument("dy_TD", args.dy_TD, dtype, shape);
  check_argument("z_TD", args.z_TD, dtype, shape);
  check_argument("mean_T", args.mean_T, of_rows);
  check_argument("inverse_deviation_T", args.inverse_deviation_T, of_rows);
  check_argument("gamma_D", args.gamma_D, of_row);
  check_argument("dz_TD", args.dz_TD, dtype, shape);
  if (args.dropout.is_on()) check_argument("dx_TD", args.dx_TD, dtype, shape);
  base::check(args.dropout.is_on() || !args.dx_TD, "dx_TD is dz_TD where dropout is off: leave it out");
  check_argument("dgamma_D", args.dgamma_D, of_row);
  check_argument("dbeta_D", args.dbeta_D, of_row);
  if (args.db_D) check_argument("db_D", args.db_D, of_row);
  check_row_identities(args.dropout, args.rows, shape[0]);
  check_scratch(stream, layer_norm_scratch_bytes(stream.device(), shape[1]));
  dispatch<&cpu::layer_norm_backward, &cuda::layer_norm_backward>(stream, args);
}

}  // namespace plenum::kernels
