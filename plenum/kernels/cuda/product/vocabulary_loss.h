#pragma once

#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/vocabulary_loss.h"

namespace plenum::kernels::cuda {

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args);
void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args);

inline std::size_t vocabulary_loss_scratch_bytes() {
  // Room to measure the products that accumulate into dh: 8,192 positions of width 1,024.
  constexpr std::size_t kMeasuredBytes = std::size_t{8192} * 1024 * sizeof(tensor::BFloat16);
  return matmul_scratch_bytes(kMeasuredBytes);
}

}  // namespace plenum::kernels::cuda
