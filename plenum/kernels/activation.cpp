#include "plenum/kernels/activation.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/activation.h"
#include "plenum/kernels/cuda/rows/activation.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void gelu_forward(const tensor::Stream& stream, const GeluForward& args) {
  check_argument("x", args.x, stream.precision().of(tensor::Role::Activation), args.x.shape());
  check_argument("y", args.y, stream.precision().of(tensor::Role::Activation), args.x.shape());
  dispatch<&cpu::gelu_forward, &cuda::gelu_forward>(stream, args);
}

void gelu_backward(const tensor::Stream& stream, const GeluBackward& args) {
  check_argument("x", args.x, stream.precision().of(tensor::Role::Activation), args.x.shape());
  check_argument("dy", args.dy, stream.precision().of(tensor::Role::Activation), args.x.shape());
  check_argument("dx", args.dx, stream.precision().of(tensor::Role::Activation), args.x.shape());
  dispatch<&cpu::gelu_backward, &cuda::gelu_backward>(stream, args);
}

void tanh_forward(const tensor::Stream& stream, const TanhForward& args) {
  check_argument("x", args.x, stream.precision().of(tensor::Role::Activation), args.x.shape());
  check_argument("y", args.y, stream.precision().of(tensor::Role::Activation), args.x.shape());
  dispatch<&cpu::tanh_forward, &cuda::tanh_forward>(stream, args);
}

void tanh_backward(const tensor::Stream& stream, const TanhBackward& args) {
  check_argument("y", args.y, stream.precision().of(tensor::Role::Activation), args.y.shape());
  check_argument("dy", args.dy, stream.precision().of(tensor::Role::Activation), args.y.shape());
  check_argument("dx", args.dx, stream.precision().of(tensor::Role::Activation), args.y.shape());
  dispatch<&cpu::tanh_backward, &cuda::tanh_backward>(stream, args);
}

}  // namespace plenum::kernels
