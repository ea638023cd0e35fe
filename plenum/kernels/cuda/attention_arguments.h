#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention_tiles.h"

namespace plenum::kernels::cuda {

/// What every form of variable-length attention on the GPU takes: bf16, with softmax and sums in fp32. The
/// contract is kernels/attention.h; pointers are to device memory, 16-byte aligned. T rows, H heads of width
/// K.
struct AttentionArguments {
  const __nv_bfloat16* qkv_T3HK;
  __nv_bfloat16* context_THK;  ///< overwritten by forward, read by backward; zero in gaps
  float* lse_HT;               ///< overwritten by forward, read by backward
  const __nv_bfloat16* dcontext_THK;
  __nv_bfloat16* dqkv_T3HK;  ///< overwritten by backward; zero in gaps

  const AttentionTile* tiles;     ///< by make_attention_tiles, of as many rows as the form has
  const std::int32_t* num_tiles;  ///< in device memory
  const AttentionGap* gaps;
  const std::int32_t* num_gaps;  ///< in device memory

  AttentionKeepBits keep;  ///< forward reads by_query, backward both; null: no dropout
  float dropout_scale;     ///< of weights that are kept

  std::int32_t num_rows;    ///< T
  std::int32_t num_heads;   ///< H
  std::int32_t head_width;  ///< K
  std::int32_t max_length;  ///< no sequence is longer, now or when a captured launch is replayed

  std::int32_t* next_item;  ///< in device memory: zero before a launch and again after it; for one at a time
  void* scratch;            ///< as many bytes as the form needs, 256-byte aligned, contents undefined
};

}  // namespace plenum::kernels::cuda
