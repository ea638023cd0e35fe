#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention/attention_tiles.h"

namespace plenum::kernels::cuda {

/// What every form of variable-length attention on the GPU takes: bf16, with softmax and sums in fp32. The
/// contract is kernels/attention.h; pointers are to device memory, 16-byte aligned. T rows, H heads of width
/// K.
struct AttentionArguments {
  const __nv_bfloat16* qkv_T3HK = nullptr;
  __nv_bfloat16* context_THK = nullptr;  ///< overwritten by forward, read by backward; zero in gaps
  float* lse_HT = nullptr;               ///< overwritten by forward, read by backward
  const __nv_bfloat16* dcontext_THK = nullptr;
  __nv_bfloat16* dqkv_T3HK = nullptr;  ///< overwritten by backward; zero in gaps

  const AttentionTile* tiles = nullptr;     ///< by make_attention_tiles, of kAttentionTileRows rows
  const std::int32_t* num_tiles = nullptr;  ///< in device memory
  const AttentionGap* gaps = nullptr;
  const std::int32_t* num_gaps = nullptr;  ///< in device memory

  AttentionKeepBits keep;   ///< forward reads by_query, backward by_key or both; all null: no dropout
  float dropout_scale = 1;  ///< of weights that are kept

  std::int32_t num_rows = 0;             ///< T
  std::int32_t num_heads = 0;            ///< H
  std::int32_t head_width = 0;           ///< K
  std::int32_t num_multiprocessors = 0;  ///< on which the stream's kernels run
  std::int32_t max_length = 0;           ///< no sequence is longer, now or when a captured launch is replayed

  /// In device memory: zero before a launch, which leaves another number; for one at a time.
  std::int32_t* next_item = nullptr;
  void* scratch = nullptr;  ///< as many bytes as the form needs, 256-byte aligned, contents undefined
};

}  // namespace plenum::kernels::cuda
