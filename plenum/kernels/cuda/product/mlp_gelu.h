#pragma once

#include "plenum/kernels/mlp_gelu.h"

namespace plenum::kernels::cuda {

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args);
void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args);

using workspace::gelu_block_sums_bytes;
using workspace::kRowsOfGeluSums;
using workspace::num_gelu_block_sums;

}  // namespace plenum::kernels::cuda
