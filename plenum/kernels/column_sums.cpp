#include "plenum/kernels/column_sums.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/column_sums.h"
#include "plenum/kernels/cuda/rows/column_sums.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args) {
  const tensor::Shape& shape = args.x_T3D.shape();
  base::check(shape.num_dims() == 2 && shape[1] % 3 == 0, "x_T3D must be rows of three parts: {}",
              to_string(shape));
  check_argument("x_T3D", args.x_T3D, stream.precision().of(tensor::Role::Activation), shape);
  for (const tensor::TensorView& sum_D : args.sum_3_D) {
    if (sum_D) check_argument("sum_3_D", sum_D, {shape[1] / 3});
  }
  dispatch<&cpu::add_column_sums, &cuda::add_column_sums>(stream, args);
}

}  // namespace plenum::kernels
