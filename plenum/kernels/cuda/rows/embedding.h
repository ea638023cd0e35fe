#pragma once

#include "plenum/kernels/embedding.h"

namespace plenum::kernels::cuda {

void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args);
void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args);

}  // namespace plenum::kernels::cuda
