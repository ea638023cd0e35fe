#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "plenum/kernels/cuda/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention_tiles.h"

namespace plenum::kernels::cuda {

// Attention by mma.sync, for every GPU from sm_80 on; head width 64 or 128. The work is a list of tiles of
// 128 rows in device memory, times heads; blocks of threads take items in turn, long sequences first. Rows of
// padding are neither read nor written. See docs/math/attention.md.

struct AttentionForwardSm80 {
  const __nv_bfloat16* qkv_T3HK = nullptr;
  const AttentionTile* tiles = nullptr;
  const std::int32_t* num_tiles = nullptr;
  int num_rows = 0;   ///< T
  int num_heads = 0;  ///< H
  int head_width = 0;
  float dropout_scale = 1;
  AttentionKeepBits keep;  ///< by_query; null: no dropout
  __nv_bfloat16* context_THK = nullptr;
  float* lse_HT = nullptr;
};
void attention_forward_sm80(cudaStream_t stream, int num_multiprocessors, const AttentionForwardSm80& args);

/// For each query, what backward needs beside the scores: log2 e times lse, and D = sum over k of dO * O.
using AttentionRowStatistics = float2;

struct AttentionRowStatisticsArguments {
  const __nv_bfloat16* context_THK = nullptr;
  const __nv_bfloat16* dcontext_THK = nullptr;
  const float* lse_HT = nullptr;
  int num_rows = 0;
  int num_heads = 0;
  int head_width = 0;
  AttentionRowStatistics* statistics_HT = nullptr;
};
void attention_row_statistics(cudaStream_t stream, const AttentionRowStatisticsArguments& args);

struct AttentionBackwardSm80 {
  const __nv_bfloat16* qkv_T3HK = nullptr;
  const __nv_bfloat16* dcontext_THK = nullptr;
  const AttentionRowStatistics* statistics_HT = nullptr;
  const AttentionTile* tiles = nullptr;
  const std::int32_t* num_tiles = nullptr;
  int num_rows = 0;
  int num_heads = 0;
  int head_width = 0;
  float dropout_scale = 1;
  AttentionKeepBits keep;  ///< both; null: no dropout
  __nv_bfloat16* dqkv_T3HK = nullptr;
};
/// dQ, whose tiles are of queries.
void attention_backward_queries_sm80(cudaStream_t stream, int num_multiprocessors,
                                     const AttentionBackwardSm80& args);
/// dK and dV, whose tiles are of keys.
void attention_backward_keys_sm80(cudaStream_t stream, int num_multiprocessors,
                                  const AttentionBackwardSm80& args);

}  // namespace plenum::kernels::cuda
