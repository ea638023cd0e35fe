#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/map_elements.cuh"
#include "plenum/kernels/cuda/rows/convert.h"

namespace plenum::kernels::cuda {
namespace {

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

}  // namespace

void round_to_compute(const tensor::Stream& stream, const RoundToCompute& args) {
  map_elements(stream, args.x_N.num_elements(), Identity(), bfloat16_data(args.y_N), args.x_N.data<float>());
}

void widen_from_compute(const tensor::Stream& stream, const WidenFromCompute& args) {
  map_elements(stream, args.x_N.num_elements(), Identity(), args.y_N.data<float>(), bfloat16_data(args.x_N));
}

}  // namespace plenum::kernels::cuda
