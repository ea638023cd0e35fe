#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "plenum/kernels/cuda/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention_tiles.h"

namespace plenum::kernels::cuda {

/// Variable-length attention for Hopper, heads of width 64, in bf16 with softmax and sums in fp32. The
/// contract is kernels/attention.h; pointers are to device memory, 16-byte aligned. T rows, H heads, K = 64.
struct AttentionArguments {
  const __nv_bfloat16* qkv_T3HK;
  __nv_bfloat16* context_THK;  ///< overwritten by forward, read by backward; zero in gaps
  float* lse_HT;               ///< overwritten by forward, read by backward
  const __nv_bfloat16* dcontext_THK;
  __nv_bfloat16* dqkv_T3HK;  ///< overwritten by backward; zero in gaps

  const AttentionTile* tiles;     ///< by make_attention_tiles with kAttentionTileRows
  const std::int32_t* num_tiles;  ///< in device memory
  const AttentionGap* gaps;
  const std::int32_t* num_gaps;  ///< in device memory

  AttentionKeepBits keep;  ///< forward reads by_query, backward both; null: no dropout
  float dropout_scale;     ///< of weights that are kept

  std::int32_t num_rows;    ///< T
  std::int32_t num_heads;   ///< H
  std::int32_t max_length;  ///< no sequence is longer, now or when a captured launch is replayed

  std::int32_t* next_item;  ///< in device memory: zero before a launch and again after it; for one at a time
  void* scratch;            ///< attention_scratch_bytes_sm90, 256-byte aligned, contents undefined
};

/// Rows of a tile: sequences up to this length are one tile.
inline constexpr std::int32_t kAttentionTileRows = 512;

std::size_t attention_scratch_bytes_sm90(std::int64_t num_rows, std::int64_t num_heads);

cudaError_t attention_forward_sm90(const AttentionArguments& args, cudaStream_t stream);
cudaError_t attention_backward_sm90(const AttentionArguments& args, cudaStream_t stream);

}  // namespace plenum::kernels::cuda
