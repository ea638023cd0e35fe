#pragma once

#include <cstdint>
#include <span>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// Everything works on flat Float32 buffers in which tensors are ranges: one pass over all of them, whatever
// their number. Sums are taken in fixed blocks in double precision, so the bytes do not depend on the number
// of threads. Elements outside all ranges are left alone. See docs/math/optimizers.md.

/// A tensor's place in the flat buffers.
struct FlatRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_decayed = false;
};

/// Returns the sum of squares of all elements. Not finite if one of them is not, or the sum overflows.
double sum_of_squares(const tensor::Stream& stream, tensor::ConstTensorView values_N);

/// One step of Adam with decoupled weight decay, on the elements of all ranges:
///   g = gradient_scale * gradient
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
///   w = w - learning_rate (m / correction1 / (sqrt(v / correction2) + epsilon) + decay w)
/// where decay counts for ranges with is_decayed only. With corrections it is PyTorch's AdamW, without the
/// original BERT's.
struct AdamStep {
  std::span<const FlatRange> ranges;  ///< in increasing order, without overlap
  tensor::ConstTensorView gradient_N;
  tensor::TensorView weight_N;         ///< in and out
  tensor::TensorView first_moment_N;   ///< in and out
  tensor::TensorView second_moment_N;  ///< in and out
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;
  double correction1 = 1;  ///< 1 - beta1^t, or 1 without bias correction
  double correction2 = 1;  ///< 1 - beta2^t, or 1
  double gradient_scale = 1;
};
void adam_step(const tensor::Stream& stream, const AdamStep& args);

/// One step of LAMB (You et al., 2020, in NVLAMB's form) on the same arguments: moments as in adam_step,
///   u = m / correction1 / (sqrt(v / correction2) + epsilon) + decay w,
///   w = w - learning_rate * ratio * u,  ratio = |w| / |u| of the range, 1 where either is 0 or the range is
///   not decayed.
void lamb_step(const tensor::Stream& stream, const AdamStep& args);

}  // namespace plenum::kernels
