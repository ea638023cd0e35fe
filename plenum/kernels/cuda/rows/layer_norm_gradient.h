#pragma once

#include "plenum/kernels/cuda/device/row_width.h"
#include "plenum/kernels/dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels::cuda {

/// Where in forward dropout was: applied to what is added to the residual before the norm, or to the norm's
/// result, as the embedding does.
enum class DropoutPlace : std::uint8_t { BeforeNorm, BehindNorm };

/// The gradient of layer norm with its dropout; see kernels::LayerNormBackward for the arguments.
struct LayerNormGradient {
  tensor::ConstTensorView dy_TD;
  tensor::ConstTensorView z_TD;
  tensor::ConstTensorView mean_T;
  tensor::ConstTensorView inverse_deviation_T;
  tensor::ConstTensorView gamma_D;
  Dropout dropout;
  DropoutPlace dropout_place = DropoutPlace::BeforeNorm;
  RowIdentities rows;
  tensor::TensorView dz_TD;      ///< overwritten; may be dy_TD
  tensor::TensorView dx_TD;      ///< overwritten; given where dropout is before the norm and on
  tensor::TensorView dgamma_D;   ///< added to
  tensor::TensorView dbeta_D;    ///< added to
  tensor::TensorView db_D = {};  ///< added to; may be left out, and is where dropout is behind the norm
};
void layer_norm_gradient(const tensor::Stream& stream, const LayerNormGradient& args);

/// Tiles of rows are dealt to at most this many blocks, whose sums over rows are added in order afterwards.
/// An H200 works on all of them at the same time: it has room for 528. More would cost more memory traffic (4
/// bytes for each block, column and sum, written and read) than they bring.
inline constexpr unsigned kMaxLayerNormParts = 512;
/// What is summed over all rows: dy zhat for dgamma, dy for dbeta, and dx for db where it is asked for.
inline constexpr std::size_t kMaxLayerNormSums = 3;

inline std::size_t layer_norm_gradient_scratch_bytes(std::int64_t width) {
  require_row_width(width);  // so that whoever plans memory learns it
  return kMaxLayerNormParts * kMaxLayerNormSums * static_cast<std::size_t>(width) * sizeof(float);
}

}  // namespace plenum::kernels::cuda
