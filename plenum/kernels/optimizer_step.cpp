#include "plenum/kernels/optimizer_step.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/optimizer_step.h"

namespace plenum::kernels {
namespace {

void check_step(const AdamStep& args) {
  const tensor::Shape& shape = args.weight_N.shape();
  base::check(shape.num_dims() == 1, "buffers must be flat: {}", to_string(shape));
  check_argument("weight_N", args.weight_N, shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("first_moment_N", args.first_moment_N, shape);
  check_argument("second_moment_N", args.second_moment_N, shape);
  std::int64_t end = 0;
  for (const FlatRange& range : args.ranges) {
    base::check(range.begin >= end && range.end >= range.begin && range.end <= shape[0],
                "ranges must increase within the buffers: [{}, {}) after {} of {}", range.begin, range.end,
                end, shape[0]);
    end = range.end;
  }
}

}  // namespace

double sum_of_squares(const tensor::Stream& stream, tensor::ConstTensorView values_N) {
  check_argument("values_N", values_N, values_N.shape());
  return cpu::sum_of_squares(stream, values_N.span<float>());
}

void adam_step(const tensor::Stream& stream, const AdamStep& args) {
  check_step(args);
  cpu::adam_step(stream, args);
}

void lamb_step(const tensor::Stream& stream, const AdamStep& args) {
  check_step(args);
  cpu::lamb_step(stream, args);
}

}  // namespace plenum::kernels
