#pragma once

#include "plenum/kernels/mlp_gelu.h"

namespace plenum::kernels::cuda {

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args);
void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args);
std::size_t mlp_gelu_scratch_bytes(std::int64_t num_rows, std::int64_t mlp_width);

}  // namespace plenum::kernels::cuda
