#include "plenum/kernels/activation.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/activation.h"

namespace plenum::kernels {

void gelu_forward(const tensor::Stream& stream, const GeluForward& args) {
  check_argument("x", args.x, args.x.shape());
  check_argument("y", args.y, args.x.shape());
  cpu::gelu_forward(stream, args);
}

void gelu_backward(const tensor::Stream& stream, const GeluBackward& args) {
  check_argument("x", args.x, args.x.shape());
  check_argument("dy", args.dy, args.x.shape());
  check_argument("dx", args.dx, args.x.shape());
  cpu::gelu_backward(stream, args);
}

void tanh_forward(const tensor::Stream& stream, const TanhForward& args) {
  check_argument("x", args.x, args.x.shape());
  check_argument("y", args.y, args.x.shape());
  cpu::tanh_forward(stream, args);
}

void tanh_backward(const tensor::Stream& stream, const TanhBackward& args) {
  check_argument("y", args.y, args.y.shape());
  check_argument("dy", args.dy, args.y.shape());
  check_argument("dx", args.dx, args.y.shape());
  cpu::tanh_backward(stream, args);
}

}  // namespace plenum::kernels
