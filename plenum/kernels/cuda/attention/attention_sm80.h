#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plenum/kernels/cuda/attention/attention_arguments.h"

namespace plenum::kernels::cuda {

// Attention by mma.sync, for every GPU from sm_80 on; head width 64 or 128. Thread blocks take tiles and
// heads in turn, long sequences first. Backward computes scores twice, once where queries own the sums (dQ)
// and once where keys do (dK and dV), so that nothing is added in memory.

cudaError_t attention_forward_sm80(const AttentionArguments& args, cudaStream_t stream);
cudaError_t attention_backward_sm80(const AttentionArguments& args, cudaStream_t stream);

}  // namespace plenum::kernels::cuda
