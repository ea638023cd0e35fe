#include "plenum/kernels/sum.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/sum.h"
#include "plenum/kernels/cuda/rows/sum.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void add_sum(const tensor::Stream& stream, const AddSum& args) {
  check_argument("x_N", args.x_N, args.x_N.shape());
  check_argument("sum_1", args.sum_1, tensor::DType::Float64, {1});
  dispatch<&cpu::add_sum, &cuda::add_sum>(stream, args);
}

}  // namespace plenum::kernels
