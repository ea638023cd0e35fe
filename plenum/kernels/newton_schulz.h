#pragma once

#include <cstdint>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::kernels {

/// The polynomial p(s) = a s + b s^3 + c s^5 of a Newton-Schulz iteration: five of them bring singular values
/// between 0.001 and 1 to somewhere between 0.68 and 1.14, as fast as a quintic can (Jordan et al., 2024).
inline constexpr float kNewtonSchulzA = 3.4445F;
inline constexpr float kNewtonSchulzB = -4.7750F;
inline constexpr float kNewtonSchulzC = 2.0315F;
/// Odd, so that the result lies in the second of two places that iterations use in turn.
inline constexpr int kNewtonSchulzIterations = 5;

/// Makes matrices nearly orthogonal: of X = U S V^T, five times
///   A = X X^T,  X = (a I + b A + c A A) X,
/// or from the other side where X has more rows than columns, which leaves U p(p(p(p(p(S))))) V^T. Products
/// are taken in the device's compute type with sums in Float32; on the CPU the bytes do not depend on the
/// number of threads. See docs/math/optimizers.md.
struct NewtonSchulz {
  std::int64_t num_matrices = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;  ///< elements from one matrix to the next, in x and in y
  /// Flat, of the compute type, from the first matrix's first element to the last one's last; the second is
  /// overwritten by the result, the first by what came before it. Singular values of the first are at most 1.
  tensor::TensorView x;
  tensor::TensorView y;
  /// [2, num_matrices, K, K], of the compute type, where K is the lesser of rows and columns: overwritten.
  tensor::TensorView squares_2BKK;
};
void newton_schulz(const tensor::Stream& stream, const NewtonSchulz& args);

}  // namespace plenum::kernels
