#pragma once

#include <span>

#include "plenum/kernels/inverse_state.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/kronecker.h"

namespace plenum::kernels {

/// The gradient of a weight, and what preconditions it.
struct PreconditionedMap {
  tensor::ConstTensorView inverse_a_DD, inverse_b_EE;
  tensor::ConstTensorView state_C;  ///< Float64, InverseState
  tensor::TensorView gradient_ED;   ///< in and out
};

/// Preconditions gradients of weights: G becomes s B^-1 G A^-1, with s such that its norm stays what it
/// was. G stays as it is where no inverse is in use, and where the product is zero or not finite. Everything
/// is Float32, of which the GPU's products read TF32; norms are summed in double precision in an order that
/// depends on shapes alone. See docs/math/kfac.md.
///
/// The GPU multiplies neighbours in the list at once where they are of one shape and all their matrices lie
/// at equal distances.
struct Precondition {
  std::span<const PreconditionedMap> maps;
  /// Float32, workspace::precondition_room_elements() for as many of each shape as follow one another: holds
  /// nothing between calls.
  tensor::TensorView room;
};
void precondition(const tensor::Stream& stream, const Precondition& args);

/// Scratch that this needs, on the CPU each thread.
using workspace::kronecker_scratch_bytes;

}  // namespace plenum::kernels
