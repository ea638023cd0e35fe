#pragma once

#include "plenum/kernels/cuda/rows/layer_norm_gradient.h"
#include "plenum/kernels/layer_norm.h"

namespace plenum::kernels::cuda {

void layer_norm_forward(const tensor::Stream& stream, const LayerNormForward& args);
void layer_norm_backward(const tensor::Stream& stream, const LayerNormBackward& args);

inline std::size_t layer_norm_scratch_bytes(std::int64_t width) {
  return layer_norm_gradient_scratch_bytes(width);
}

}  // namespace plenum::kernels::cuda
