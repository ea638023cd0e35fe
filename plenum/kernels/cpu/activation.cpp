#include "plenum/kernels/cpu/activation.h"

#include <algorithm>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

/// Elements of one task: enough that handing it out costs nothing.
constexpr std::int64_t kChunk = std::int64_t{16} << 10;

/// y[i] = function(inputs[i]...) for all elements of y.
template <typename Function, typename... Inputs>
void map(const tensor::Stream& stream, const tensor::TensorView& y, Function function,
         const Inputs&... inputs) {
  const std::int64_t size = y.num_elements();
  float* const to = y.data<float>();
  stream.pool().run(
      static_cast<std::size_t>((size + kChunk - 1) / kChunk), [&, to](std::size_t task, std::size_t) {
        const std::int64_t begin = static_cast<std::int64_t>(task) * kChunk;
        for_vectors(begin, std::min(size, begin + kChunk), [&](std::int64_t i, auto lanes) {
          store_first(to + i, function(load_first(inputs.template data<float>() + i, lanes)...), lanes);
        });
      });
}

}  // namespace

void gelu_forward(const tensor::Stream& stream, const GeluForward& args) {
  map(
      stream, args.y, [](Vec x) { return gelu(x); }, args.x);
}

void gelu_backward(const tensor::Stream& stream, const GeluBackward& args) {
  map(
      stream, args.dx, [](Vec dy, Vec x) { return dy * gelu_derivative(x); }, args.dy, args.x);
}

void tanh_forward(const tensor::Stream& stream, const TanhForward& args) {
  map(
      stream, args.y, [](Vec x) { return tanh(x); }, args.x);
}

void tanh_backward(const tensor::Stream& stream, const TanhBackward& args) {
  map(
      stream, args.dx, [](Vec dy, Vec y) { return dy * (1.0F - y * y); }, args.dy, args.y);
}

}  // namespace plenum::kernels::cpu
