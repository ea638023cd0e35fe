#include "plenum/pipeline/gradient_wire.h"

#include <algorithm>
#include <span>

#include "plenum/kernels/convert.h"
#include "plenum/tensor/bfloat16.h"

namespace plenum::pipeline {

using tensor::BFloat16;
using tensor::TensorView;

comm::Elements GradientWire::pack(const std::optional<tensor::Stream>& queue,
                                  const TensorView& bucket_B) const {
  const TensorView packed = wire_B_.rows(0, bucket_B.num_elements());
  if (queue) {
    kernels::round_to_compute(*queue, {.x_N = bucket_B, .y_N = packed});
  } else {
    // By the thread that communicates: all others compute meanwhile.
    std::ranges::transform(bucket_B.span<float>(), packed.span<BFloat16>().begin(), tensor::to_bfloat16);
  }
  return {std::as_writable_bytes(packed.span<BFloat16>()), tensor::DType::BFloat16};
}

void GradientWire::unpack(const std::optional<tensor::Stream>& queue, std::int64_t first,
                          const TensorView& part) const {
  const TensorView packed = wire_B_.rows(first, part.num_elements());
  if (queue) {
    kernels::widen_from_compute(*queue, {.x_N = packed, .y_N = part});
  } else {
    std::ranges::transform(packed.span<BFloat16>(), part.span<float>().begin(), tensor::to_float);
  }
}

}  // namespace plenum::pipeline
