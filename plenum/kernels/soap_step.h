#pragma once

#include <cstdint>
#include <span>

#include "plenum/kernels/orthonormalise.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/soap.h"

namespace plenum::kernels {

using workspace::FlatMatrices;

/// One step of SOAP (Vyas et al., 2024) on matrices of flat buffers, unless it is skipped: Adam in the
/// eigenbasis of the second moments of a gradient's rows and columns. Of a matrix of R rows and C columns,
/// with beta for all averages,
///   G = gradient_scale * gradient
///   L = beta L + (1 - beta) G G^T,  F = beta F + (1 - beta) G^T G
///   P, Q: the rows are L's and F's eigenvectors; one iteration P = orthonormalise(P (L + s I)) follows L,
///   with s = 1e-5 trace(L) / R, or 1 where L is zero; Q and F alike
///   M = beta M + (1 - beta) G,  V = beta V + (1 - beta) (P G Q^T)^2
///   U = (P M Q^T) / correction / (sqrt(V / correction) + epsilon),  correction = 1 - beta^(t - 1)
///   W = W - learning_rate (P^T U Q + decay W)
/// of update t. The first makes L, F, P and Q alone: in its own eigenbasis a gradient is diagonal, and what
/// rounding leaves beside the diagonal would become as large as the rest.
/// A size above the limit is not rotated: L and P, or F and Q, are left out. V is in the eigenbasis. See
/// docs/math/optimizers.md.
struct SoapStep {
  std::span<const FlatMatrices> groups;
  std::int64_t limit = 1024;  ///< the largest size that is rotated
  tensor::ConstTensorView gradient_N;
  tensor::TensorView weight_N;               ///< in and out
  tensor::TensorView first_moment_N;         ///< in and out
  tensor::TensorView second_moment_N;        ///< in and out
  tensor::TensorView compute_weight_N = {};  ///< as products read them: overwritten by the new weights
  /// Flat, Float32: soap_state_elements(). In and out, in the order of groups: of one of them all L, all P,
  /// all F, all Q of its matrices.
  tensor::TensorView state;
  tensor::TensorView room;  ///< flat, Float32, soap_room_elements(): overwritten
  tensor::ConstTensorView scalars_C;
  double beta = 0.95;
  double epsilon = 1e-8;
  double decay = 0.01;
  bool is_first = false;   ///< of the run: bases begin as the identity, whether the step is skipped or not
  int num_iterations = 0;  ///< of the bases in this step
};
void soap_step(const tensor::Stream& stream, const SoapStep& args);

// The step in parts, which ranks divide among themselves and schedules move: together, in this order and with
// as many iterations, they make the bytes of the whole. On the CPU alone so far. Fields are SoapStep's.

/// L and F.
struct SoapFactors {
  std::span<const FlatMatrices> groups;
  std::int64_t limit = 1024;
  tensor::ConstTensorView gradient_N;
  tensor::TensorView state;
  tensor::TensorView room;
  tensor::ConstTensorView scalars_C;
  double beta = 0.95;
  bool is_first = false;
  int num_iterations = 0;  ///< of the bases, by the factors as they are then
};
void soap_factors(const tensor::Stream& stream, const SoapFactors& args);

/// An iteration of one basis, or some of its steps: the product, each panel of rows that is made orthonormal,
/// and last that the basis becomes what came of it. Steps give the bytes of the whole, however they are cut.
struct SoapBasis {
  tensor::ConstTensorView factor_NN;       ///< Float32; read by the first step
  tensor::TensorView basis_NN;             ///< in and out: read by the first step, written by the last
  tensor::TensorView room;                 ///< flat, N^2 elements: overwritten
  tensor::ConstTensorView scalars_C = {};  ///< if given: nothing in a step that is skipped
  /// Where only steps [first_step, end_step) are made: what goes from one step to the next. May be the
  /// factor, which the first step then overwrites.
  tensor::TensorView iterate_NN = {};
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;
};
constexpr std::int64_t num_soap_basis_steps(std::int64_t N) {
  return 2 + num_orthonormalise_steps(N);
}
void soap_basis(const tensor::Stream& stream, const SoapBasis& args);

/// M, V and, in the place of the gradient, P^T U Q.
struct SoapDirections {
  std::span<const FlatMatrices> groups;
  std::span<const FlatMatrices> others = {};  ///< of which only M is updated
  std::int64_t limit = 1024;
  tensor::TensorView gradient_N;  ///< in; of groups out: directions
  tensor::TensorView first_moment_N;
  tensor::TensorView second_moment_N;
  tensor::TensorView state;
  tensor::TensorView room;
  tensor::ConstTensorView scalars_C;
  double beta = 0.95;
  double epsilon = 1e-8;
};
void soap_directions(const tensor::Stream& stream, const SoapDirections& args);

/// W.
struct SoapWeights {
  std::span<const FlatMatrices> groups;
  tensor::ConstTensorView direction_N;  ///< where matrices lie
  tensor::TensorView weight_N;          ///< in and out
  tensor::ConstTensorView scalars_C;
  double decay = 0.01;
};
void soap_weights(const tensor::Stream& stream, const SoapWeights& args);

}  // namespace plenum::kernels
