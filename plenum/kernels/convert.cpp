#include "plenum/kernels/convert.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cuda/rows/convert.h"

namespace plenum::kernels {

void round_to_compute(const tensor::Stream& stream, const RoundToCompute& args) {
  base::check(stream.device() == tensor::Device::Cuda, "the CPU computes with what it keeps");
  check_argument("x_N", args.x_N, args.x_N.shape());
  check_argument("y_N", args.y_N, tensor::DType::BFloat16, args.x_N.shape());
  cuda::round_to_compute(stream, args);
}

}  // namespace plenum::kernels
