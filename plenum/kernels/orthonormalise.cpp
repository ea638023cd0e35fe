#include "plenum/kernels/orthonormalise.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/orthonormalise.h"
#include "plenum/kernels/cuda/rows/orthonormalise.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args) {
  const tensor::Shape& shape = args.x_BNN.shape();
  base::check(shape.num_dims() == 3 && shape[1] == shape[2], "matrices must be square: {}", to_string(shape));
  check_argument("x_BNN", args.x_BNN, shape);
  if (args.x_BNN.num_elements() == 0) return;
  dispatch<&cpu::orthonormalise, &cuda::orthonormalise>(stream, args);
}

}  // namespace plenum::kernels
