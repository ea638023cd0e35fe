#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention_tiles.h"

namespace plenum::kernels::cuda {

/// Writes zeros to the rows of gaps. Columns are a multiple of 8; any grid.
static __global__ void zero_gaps(__nv_bfloat16* matrix, std::int64_t num_columns, const AttentionGap* gaps,
                                 const std::int32_t* num_gaps) {
  const std::int64_t chunks = num_columns / 8;
  for (int g = 0; g < *num_gaps; ++g) {
    const AttentionGap gap = gaps[g];
    uint4* const out = reinterpret_cast<uint4*>(matrix + gap.start * num_columns);
    for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < gap.length * chunks;
         i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
      out[i] = {0, 0, 0, 0};
  }
}

}  // namespace plenum::kernels::cuda
