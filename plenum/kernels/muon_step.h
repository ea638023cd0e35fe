#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/kernels/step_scalars.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::kernels {

using workspace::FlatMatrices;

/// One step of Muon (Jordan et al., 2024) on matrices of flat buffers, unless it is skipped:
///   g = gradient_scale * gradient
///   m = momentum m + (1 - momentum) g,  u = momentum m + (1 - momentum) g     (Nesterov)
///   o = newton_schulz(u / max(|u|, 1e-7))
///   w = w - learning_rate (0.2 sqrt(max(rows, columns)) o + decay w)
/// where decay counts for matrices with is_decayed only. The factor gives an update the root mean square that
/// Adam's has, so both can have one learning rate (Liu et al., 2025). Elements outside all matrices are left
/// alone. See docs/math/optimizers.md.
struct MuonStep {
  std::span<const FlatMatrices> groups;
  tensor::ConstTensorView chunks_C8 = {};  ///< matrix_chunks(groups) in its memory: needed on the GPU
  tensor::ConstTensorView gradient_N;
  tensor::TensorView weight_N;  ///< in and out
  tensor::TensorView moment_N;  ///< in and out
  /// Where iterations begin, and on the GPU end: overwritten where matrices lie. On the GPU a matrix begins
  /// at a multiple of four elements, and has such a number.
  tensor::TensorView iterate_N;
  tensor::TensorView compute_weight_N = {};  ///< as products read them: overwritten by the new weights
  tensor::TensorView room;  ///< flat, of the compute type, newton_schulz_room(groups): overwritten
  tensor::ConstTensorView scalars_C;
  double momentum = 0.95;
  double decay = 0.01;
};
void muon_step(const tensor::Stream& stream, const MuonStep& args);

/// The first half of the step, for replicas that divide its products: m, and o in the place of the gradient.
/// On the CPU alone so far.
struct MuonDirections {
  std::span<const FlatMatrices> groups;       ///< whose o is made
  std::span<const FlatMatrices> others = {};  ///< of which only m is updated
  tensor::TensorView gradient_N;              ///< in; of groups out: o
  tensor::TensorView moment_N;                ///< in and out
  tensor::TensorView iterate_N;               ///< overwritten where matrices lie
  tensor::TensorView room;                    ///< as MuonStep
  tensor::ConstTensorView scalars_C;
  double momentum = 0.95;
};
void muon_directions(const tensor::Stream& stream, const MuonDirections& args);

/// The second half: w. Both together make the bytes of the whole step.
struct MuonWeights {
  std::span<const FlatMatrices> groups;
  tensor::ConstTensorView direction_N;  ///< o, where matrices lie
  tensor::TensorView weight_N;          ///< in and out
  tensor::ConstTensorView scalars_C;
  double decay = 0.01;
};
void muon_weights(const tensor::Stream& stream, const MuonWeights& args);

/// The factor of a matrix's orthogonal update.
double muon_factor(const FlatMatrices& matrices);

/// Int64, [C, 8]: the matrices of all groups cut into chunks that blocks of the GPU take, each {begin, end,
/// begin of the matrix, its elements, the greater of its sizes, is_decayed, index of the matrix, 0};
/// workspace::num_matrix_chunks() of them.
std::vector<std::int64_t> matrix_chunks(std::span<const FlatMatrices> groups);

}  // namespace plenum::kernels
