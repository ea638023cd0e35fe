#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/kernels/step_scalars.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::kernels {

// Everything works on flat Float32 buffers in which tensors are ranges: one pass over all of them, whatever
// their number. Sums are taken in fixed blocks in double precision, so the bytes do not depend on the number
// of threads. Elements outside all ranges are left alone. See docs/math/optimizers.md.

/// A tensor's place in the flat buffers.
struct FlatRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_decayed = false;
  float rate_factor = 1;  ///< by which the learning rate is multiplied
};

/// Adds the squares of a part of the gradient, or of all of it, to StepScalar::GradientSquares, in an order
/// that depends on N alone.
struct GradientSquares {
  tensor::ConstTensorView gradient_N;  ///< on the GPU it begins at a multiple of 16 bytes
  tensor::TensorView scalars_C;        ///< in and out
};
void add_gradient_squares(const tensor::Stream& stream, const GradientSquares& args);

/// Decides what to do with a step's gradient, of which the squares were added up: computes its norm and the
/// factor that clips it, whether the step is skipped (loss or norm is not finite), and if not counts the
/// update and computes its bias corrections.
struct StepDecision {
  double clip_norm = 1;  ///< greatest norm of the whole gradient; 0: no clipping
  double beta1 = 0.9;
  double beta2 = 0.999;
  bool is_bias_corrected = true;
  tensor::TensorView scalars_C;  ///< StepScalar; in: losses, squares, number of updates; out: what is decided
};
void decide_step(const tensor::Stream& stream, const StepDecision& args);

/// The ranges of a step as the GPU reads them, in its memory: see optimizer_chunks().
struct OptimizerWork {
  tensor::ConstTensorView chunks_C4 = {};
};

/// One step of Adam with decoupled weight decay, on the elements of all ranges, unless it is skipped:
///   g = gradient_scale * gradient
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
///   w = w - learning_rate (m / correction1 / (sqrt(v / correction2) + epsilon) + decay w)
/// where decay counts for ranges with is_decayed only; gradient_scale, learning_rate and the corrections are
/// StepScalars, the learning rate times the rate_factor of the range. With corrections it is PyTorch's AdamW,
/// without the original BERT's.
struct AdamStep {
  std::span<const FlatRange> ranges;  ///< in increasing order, without overlap
  OptimizerWork work = {};            ///< needed on the GPU
  tensor::ConstTensorView gradient_N;
  tensor::TensorView weight_N;               ///< in and out
  tensor::TensorView first_moment_N;         ///< in and out
  tensor::TensorView second_moment_N;        ///< in and out
  tensor::TensorView compute_weight_N = {};  ///< as products read them: overwritten by the new weights
  tensor::ConstTensorView scalars_C;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;
};
void adam_step(const tensor::Stream& stream, const AdamStep& args);

/// One step of LAMB (You et al., 2020, in NVLAMB's form) on the same arguments: moments as in adam_step,
///   u = m / correction1 / (sqrt(v / correction2) + epsilon) + decay w,
///   w = w - learning_rate * ratio * u,  ratio = |w| / |u| of the range, 1 where either is 0 or the range is
///   not decayed.
void lamb_step(const tensor::Stream& stream, const AdamStep& args);

/// The same in two halves, for ranges that are parts of tensors whose other parts lie on other ranks: moments
/// and the squares of each part, then, when the squares of all parts of a tensor have been added up, weights.
struct LambHalf {
  AdamStep step;
  tensor::TensorView squares_R2;  ///< Float64: of each range's weights and of its u; of its tensor's
};
/// Overwrites moments and squares_R2, unless the step is skipped.
void lamb_moments(const tensor::Stream& stream, const LambHalf& args);
/// Overwrites weights; squares_R2 are those of whole tensors.
void lamb_weights(const tensor::Stream& stream, const LambHalf& args);

/// Int64, [C, 4]: the ranges cut into chunks that blocks of the GPU take, each {begin, end, settings, index
/// of the range}; workspace::num_optimizer_chunks() of each. Settings are
/// is_decayed in the lower half and the bits of rate_factor in the upper.
std::vector<std::int64_t> optimizer_chunks(std::span<const FlatRange> ranges);

/// Scratch that any of these needs on the GPU.
using workspace::optimizer_scratch_bytes;

}  // namespace plenum::kernels
