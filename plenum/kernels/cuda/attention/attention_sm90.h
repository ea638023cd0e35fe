#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plenum/kernels/cuda/attention/attention_arguments.h"

namespace plenum::kernels::cuda {

// Attention by wgmma, for Hopper; head width 64.

std::size_t attention_scratch_bytes_sm90(std::int64_t max_length);

cudaError_t attention_forward_sm90(const AttentionArguments& args, cudaStream_t stream);
cudaError_t attention_backward_sm90(const AttentionArguments& args, cudaStream_t stream);

}  // namespace plenum::kernels::cuda
