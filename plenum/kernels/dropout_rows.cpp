#include "plenum/kernels/dropout_rows.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/check_row_identities.h"
#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/dropout_rows.h"
#include "plenum/kernels/cuda/rows/dropout_rows.h"
#include "plenum/kernels/dispatch.h"
#include "plenum/workspace/rows.h"

namespace plenum::kernels {

void dropout_rows(const tensor::Stream& stream, const DropoutRows& args) {
  base::check(args.x_TD.shape().num_dims() == 2, "rows of what shape? {}", to_string(args.x_TD.shape()));
  const tensor::DType activation = stream.precision().of(tensor::Role::Activation);
  check_argument("x_TD", args.x_TD, activation, args.x_TD.shape());
  check_argument("y_TD", args.y_TD, activation, args.x_TD.shape());
  check_row_identities(args.dropout, args.rows, args.x_TD.size(0));
  check_scratch(stream, workspace::dropout_rows_scratch_bytes(stream.device(), args.x_TD.size(1)));
  dispatch<&cpu::dropout_rows, &cuda::dropout_rows>(stream, args);
}

}  // namespace plenum::kernels
