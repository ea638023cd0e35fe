#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plenum/kernels/cuda/attention/attention_arguments.h"

namespace plenum::kernels::cuda {

// Attention by wgmma, for Hopper; head width 64.

cudaError_t attention_forward_sm90(const AttentionArguments& args, cudaStream_t stream);
cudaError_t attention_backward_sm90(const AttentionArguments& args, cudaStream_t stream);

}  // namespace plenum::kernels::cuda
