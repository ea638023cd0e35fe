#pragma once

#include "plenum/kernels/dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/rows.h"

namespace plenum::kernels {

// T rows, D width. Rows have the type of activations; what is one for each row or one for each column is
// Float32. See docs/math/layer_norm.md.

/// Computes z = residual + dropout(x) and y = gamma (z - mean(z)) / sqrt(var(z) + epsilon) + beta, row by
/// row.
struct LayerNormForward {
  tensor::ConstTensorView x_TD;
  tensor::ConstTensorView residual_TD;  ///< may be left out: z = dropout(x)
  tensor::ConstTensorView gamma_D;
  tensor::ConstTensorView beta_D;
  float epsilon = 1e-12F;
  Dropout dropout;
  RowIdentities rows;                      ///< needed where dropout is on
  tensor::TensorView z_TD;                 ///< overwritten, for backward; may be x_TD; may be left out
  tensor::TensorView y_TD;                 ///< overwritten; may be x_TD or residual_TD where z_TD is neither
  tensor::TensorView mean_T;               ///< overwritten, for backward; may be left out
  tensor::TensorView inverse_deviation_T;  ///< 1 / sqrt(var + epsilon); overwritten; may be left out
};
void layer_norm_forward(const tensor::Stream& stream, const LayerNormForward& args);

/// Computes dz from dy, dx = dropout'(dz), dgamma += sum over rows of dy zhat, dbeta += sum over rows of dy,
/// db += sum over rows of dx, where zhat = (z - mean) * inverse_deviation. db is the gradient of the bias of
/// the linear map that made x: to sum dx here spares a pass over it.
struct LayerNormBackward {
  tensor::ConstTensorView dy_TD;
  tensor::ConstTensorView z_TD;
  tensor::ConstTensorView mean_T;
  tensor::ConstTensorView inverse_deviation_T;
  tensor::ConstTensorView gamma_D;
  Dropout dropout;
  RowIdentities rows;
  tensor::TensorView dz_TD;      ///< gradient of the residual; overwritten; may be dy_TD
  tensor::TensorView dx_TD;      ///< overwritten; left out where dropout is off: it would be dz
  tensor::TensorView dgamma_D;   ///< added to
  tensor::TensorView dbeta_D;    ///< added to
  tensor::TensorView db_D = {};  ///< added to; may be left out
};
void layer_norm_backward(const tensor::Stream& stream, const LayerNormBackward& args);

/// Scratch that either needs, on the CPU each thread.
using workspace::layer_norm_scratch_bytes;

}  // namespace plenum::kernels
