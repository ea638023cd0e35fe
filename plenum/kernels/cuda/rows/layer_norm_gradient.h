#pragma once

#include "plenum/kernels/dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/rows.h"

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

using workspace::kMaxLayerNormParts;
using workspace::kMaxLayerNormSums;

}  // namespace plenum::kernels::cuda
