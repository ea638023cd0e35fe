#pragma once

#include <cstdint>
#include <span>

#include "plenum/kernels/inverse_state.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/kronecker.h"

namespace plenum::kernels {

using workspace::kInversePanel;
using workspace::num_inverse_steps;

/// A symmetric positive definite matrix that becomes its inverse.
struct SpdMatrix {
  /// Float32, in and out. The lower half is read and worked on; the last step leaves the whole inverse.
  tensor::TensorView matrix_NN;
  InverseState least_pivot = InverseState::LeastPivotA;  ///< which one it is
  tensor::TensorView state_C;                            ///< Float64, InverseState; in and out
};

/// Inverts symmetric positive definite matrices in place, panel by panel: step s of num_inverse_steps(N)
/// eliminates the columns of panel s from all others (the block form of the sweep operator, which takes a
/// Cholesky factorisation of every diagonal block), and the last one finishes. So the work can be cut between
/// any two steps, and all but the last are alike. The bytes of a matrix depend neither on the cut, nor on the
/// number of threads, nor on the matrices beside it. See docs/math/kfac.md.
///
/// The GPU works on all matrices at once: a step of many takes hardly longer than a step of one. Those with
/// fewer steps are done earlier.
///
/// Nothing is thrown where a matrix is not positive definite: a pivot below the least one that is allowed,
/// or a result that is not finite, sets InverseState::HasFailed, and the matrix then holds nothing of use.
/// Matrices of one state fail together.
struct InvertSpd {
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;  ///< up to the most steps that one of the matrices has
  std::span<const SpdMatrix> matrices;
  tensor::TensorView room;  ///< Float32, workspace::inverse_room_elements(): holds nothing between calls
};
void invert_spd(const tensor::Stream& stream, const InvertSpd& args);

/// Scratch that this needs, on the CPU each thread.
using workspace::kronecker_scratch_bytes;

}  // namespace plenum::kernels
