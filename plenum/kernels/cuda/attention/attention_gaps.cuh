#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention/attention_tiles.h"

namespace plenum::kernels::cuda {

/// Rows that belong to no sequence.
struct GapList {
  const AttentionGap* gaps;
  const std::int32_t* num_gaps;

  /// Writes zeros to their rows of a matrix, by num_threads threads of each block of the grid. Columns are a
  /// multiple of 8.
  __device__ void zero(__nv_bfloat16* matrix, int num_columns, int thread, int num_threads) const {
    const std::int64_t chunks = num_columns / 8;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * num_threads;
    for (int g = 0; g < *num_gaps; ++g) {
      const AttentionGap gap = gaps[g];
      uint4* const out = reinterpret_cast<uint4*>(matrix) + gap.start * chunks;
      for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * num_threads + thread;
           i < gap.length * chunks; i += step)
        out[i] = {0, 0, 0, 0};
    }
  }
};

}  // namespace plenum::kernels::cuda
