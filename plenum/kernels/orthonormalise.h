#pragma once

#include <cstdint>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Makes the rows of square matrices orthonormal, in their order: row i becomes what is left of it beside
/// the rows before it, of length 1, which is Q^T of X^T = Q R. By modified Gram-Schmidt, twice, since rows
/// that were nearly parallel are orthogonal only then; by panels of rows. A row of which nothing is left
/// begins anew as a unit vector. Every sum is taken by one thread of the CPU, or one warp of the GPU, so
/// bytes depend neither on their number nor on that of the matrices. The CPU needs
/// workspace::gemm_scratch_bytes(). On the CPU it is a number of steps, by which it may be cut: a panel of
/// rows each.
struct Orthonormalise {
  tensor::TensorView x_BNN;  ///< Float32; in and out
};
constexpr std::int64_t kOrthonormalPanel = 32;
constexpr std::int64_t kOrthonormalPasses = 2;
constexpr std::int64_t num_orthonormalise_steps(std::int64_t N) {
  return kOrthonormalPasses * ((N + kOrthonormalPanel - 1) / kOrthonormalPanel);
}
void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args);

}  // namespace plenum::kernels
