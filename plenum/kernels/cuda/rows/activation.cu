#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/gelu.cuh"
#include "plenum/kernels/cuda/device/map_elements.cuh"
#include "plenum/kernels/cuda/rows/activation.h"

namespace plenum::kernels::cuda {
namespace {

struct Gelu {
  __device__ float operator()(float x) const { return gelu(x); }
};

struct GeluGradient {
  __device__ float operator()(float x, float dy) const { return dy * gelu_derivative(x); }
};

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

struct TanhGradient {
  __device__ float operator()(float y, float dy) const { return dy * (1.0F - y * y); }
};

}  // namespace

void gelu_forward(const tensor::Stream& stream, const GeluForward& args) {
  map_elements(stream, args.y.num_elements(), Gelu(), bfloat16_data(args.y), bfloat16_data(args.x));
}

void gelu_backward(const tensor::Stream& stream, const GeluBackward& args) {
  map_elements(stream, args.dx.num_elements(), GeluGradient(), bfloat16_data(args.dx), bfloat16_data(args.x),
               bfloat16_data(args.dy));
}

void tanh_forward(const tensor::Stream& stream, const TanhForward& args) {
  map_elements(stream, args.y.num_elements(), Tanh(), bfloat16_data(args.y), bfloat16_data(args.x));
}

void tanh_backward(const tensor::Stream& stream, const TanhBackward& args) {
  map_elements(stream, args.dx.num_elements(), TanhGradient(), bfloat16_data(args.dx), bfloat16_data(args.y),
               bfloat16_data(args.dy));
}

}  // namespace plenum::kernels::cuda
