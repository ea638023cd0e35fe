#pragma once

#include "plenum/kernels/embedding.h"

namespace plenum::kernels::cuda {

void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args);
void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args);
std::size_t embedding_scratch_bytes(std::int64_t num_rows, std::int64_t width);

}  // namespace plenum::kernels::cuda
