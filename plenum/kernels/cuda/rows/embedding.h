#pragma once

#include <algorithm>

#include "plenum/kernels/cuda/rows/layer_norm_gradient.h"
#include "plenum/kernels/cuda/rows/table_gradient.h"
#include "plenum/kernels/embedding.h"

namespace plenum::kernels::cuda {

void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args);
void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args);

inline std::size_t embedding_scratch_bytes(std::int64_t num_rows, std::int64_t width) {
  return std::max(layer_norm_gradient_scratch_bytes(width), table_gradient_scratch_bytes(num_rows, width));
}

}  // namespace plenum::kernels::cuda
