#include "plenum/kernels/convert.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cuda/rows/convert.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

template <typename Args>
void refuse_on_cpu(const tensor::Stream&, const Args&) {
  throw base::InternalError("the CPU computes with what it keeps");
}

}  // namespace

void round_to_compute(const tensor::Stream& stream, const RoundToCompute& args) {
  check_argument("x_N", args.x_N, args.x_N.shape());
  check_argument("y_N", args.y_N, tensor::DType::BFloat16, args.x_N.shape());
  dispatch<&refuse_on_cpu<RoundToCompute>, &cuda::round_to_compute>(stream, args);
}

void widen_from_compute(const tensor::Stream& stream, const WidenFromCompute& args) {
  check_argument("x_N", args.x_N, tensor::DType::BFloat16, args.x_N.shape());
  check_argument("y_N", args.y_N, args.x_N.shape());
  dispatch<&refuse_on_cpu<WidenFromCompute>, &cuda::widen_from_compute>(stream, args);
}

}  // namespace plenum::kernels
