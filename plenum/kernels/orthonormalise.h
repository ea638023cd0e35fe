#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Makes the rows of square matrices orthonormal, in their order: row i becomes what is left of it beside
/// the rows before it, of length 1, which is Q^T of X^T = Q R. By modified Gram-Schmidt, twice, since rows
/// that were nearly parallel are orthogonal only then; by panels of rows. A row of which nothing is left
/// begins anew as a unit vector. Every sum is taken by one thread of the CPU, or one warp of the GPU, so bytes
/// depend neither on their number nor on that of the matrices. The CPU needs workspace::gemm_scratch_bytes().
struct Orthonormalise {
  tensor::TensorView x_BNN;  ///< Float32; in and out
};
void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args);

}  // namespace plenum::kernels
