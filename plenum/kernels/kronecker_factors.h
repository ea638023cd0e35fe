#pragma once

#include <span>

#include "plenum/kernels/inverse_state.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// The two Kronecker factors of a linear map from width D to width E, from sums of second moments to inverses
// in use. Matrices are Float32, of sums and averages the lower halves; state_C is Float64 (InverseState).
// Every sum has one order. A call works on several maps, which the GPU does at once. See docs/math/kfac.md.

/// A running average of which the newest part is not yet in: (keep * average + (1 - keep) * newest) / weight.
struct RunningFactors {
  tensor::TensorView a_DD, b_EE;  ///< left out: there is no average, the newest part is all
  double keep = 0;
};

/// Begins an inversion: A = a_scale * sum_a and B = b_scale * sum_b, or their running averages, with factored
/// Tikhonov damping. With a and b the means of their diagonals, pi = sqrt(a / b) and r = sqrt(a b):
///   A + sqrt(damping) pi sqrt(r) I,  B + sqrt(damping) / pi sqrt(r) I.
/// Sets the least pivots, and HasFailed to whether a or b is not finite or not positive, else to 0.
struct DampFactors {
  tensor::ConstTensorView sum_a_DD, sum_b_EE;
  double a_scale = 1;
  double b_scale = 1;
  RunningFactors running = {};  ///< read
  double damping = 0;
  tensor::TensorView a_DD, b_EE;  ///< overwritten
  tensor::TensorView state_C;     ///< in and out
};
void damp_factors(const tensor::Stream& stream, std::span<const DampFactors> maps);

/// Puts new inverses into use, unless the inversion failed or the step whose statistics they come from was
/// skipped: swaps them with those in use, so that they can be given back. Sets IsTaken to whether it did.
struct TakeInverse {
  tensor::TensorView new_a_DD, new_b_EE;  ///< in and out
  tensor::TensorView a_DD, b_EE;          ///< in and out
  tensor::ConstTensorView skipped_1 =
      {};                      ///< Float64: above 0 where that step was skipped; left out: unknown
  tensor::TensorView state_C;  ///< in and out
};
void take_inverse(const tensor::Stream& stream, std::span<const TakeInverse> maps);

/// Gives back inverses that were taken before the step that made them was skipped: swaps them again.
struct ReturnInverse {
  TakeInverse taken;  ///< with skipped_1
};
void return_inverse(const tensor::Stream& stream, std::span<const ReturnInverse> maps);

/// Adds the newest part to running averages whose inverses are in use: average = keep * average + (1 - keep)
/// * scale * sum, and so its weight. Does nothing unless IsTaken.
struct FoldFactors {
  tensor::ConstTensorView sum_a_DD, sum_b_EE;
  double a_scale = 1;
  double b_scale = 1;
  RunningFactors running;      ///< in and out
  tensor::TensorView state_C;  ///< in and out
};
void fold_factors(const tensor::Stream& stream, std::span<const FoldFactors> maps);

}  // namespace plenum::kernels
