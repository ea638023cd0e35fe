#pragma once

#include "plenum/kernels/inverse_state.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/kronecker.h"

namespace plenum::kernels {

/// Preconditions the gradient of a weight: G becomes s B^-1 G A^-1, with s such that its norm stays what it
/// was. G stays as it is where no inverse is in use, and where the product is zero or not finite. Everything
/// is Float32, norms are summed in double precision in an order that depends on shapes alone. See
/// docs/math/kfac.md.
struct Precondition {
  tensor::ConstTensorView inverse_a_DD, inverse_b_EE;
  tensor::ConstTensorView state_C;  ///< Float64, InverseState
  tensor::TensorView gradient_ED;   ///< in and out
  tensor::TensorView work_2ED;      ///< room that holds nothing between calls
};
void precondition(const tensor::Stream& stream, const Precondition& args);

/// Scratch that this needs, on the CPU each thread.
using workspace::kronecker_scratch_bytes;

}  // namespace plenum::kernels
