#include "plenum/kernels/activation.h"

#include "plenum/base/check.h"
#include "plenum/kernels/cpu/activation.h"

namespace plenum::kernels {
namespace {

template <typename... Others>
void check_same_shape(const tensor::ConstTensorView& first, const Others&... others) {
  (base::check(others.shape() == first.shape(), "an activation needs tensors of one shape: {} and {}",
               to_string(first.shape()), to_string(others.shape())),
   ...);
}

}  // namespace

void gelu_forward(const tensor::Stream& stream, const GeluForward& args) {
  check_same_shape(args.x, args.y);
  cpu::gelu_forward(stream, args);
}

void gelu_backward(const tensor::Stream& stream, const GeluBackward& args) {
  check_same_shape(args.x, args.dy, args.dx);
  cpu::gelu_backward(stream, args);
}

void tanh_forward(const tensor::Stream& stream, const TanhForward& args) {
  check_same_shape(args.x, args.y);
  cpu::tanh_forward(stream, args);
}

void tanh_backward(const tensor::Stream& stream, const TanhBackward& args) {
  check_same_shape(args.y, args.dy, args.dx);
  cpu::tanh_backward(stream, args);
}

}  // namespace plenum::kernels
