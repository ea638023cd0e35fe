#pragma once

#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/linear.h"

namespace plenum::kernels::cuda {

void linear_forward(const tensor::Stream& stream, const LinearForward& args);
void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args);
void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args);

inline std::size_t linear_scratch_bytes() {
  // Room to measure what is added to gradients: of inputs up to 32768 tokens of BERT-large, and of any
  // weight.
  constexpr std::size_t kMeasuredBytes = std::size_t{32768} * 1024 * sizeof(tensor::BFloat16);
  return matmul_scratch_bytes(kMeasuredBytes);
}

}  // namespace plenum::kernels::cuda
