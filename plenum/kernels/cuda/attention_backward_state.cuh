#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention_sm90.h"
#include "plenum/kernels/cuda/attention_stream.cuh"

namespace plenum::kernels::cuda {

// Each item goes through two phases (see attention_stream.cuh for the flow and docs/math/attention.md for the
// formulas):
//   1. queries are owned, keys and values streamed: S = Q K^T, dP = dO V^T, dQ += dS K;
//   2. keys and values are owned, queries and dO streamed: S^T = K Q^T, dP^T = V dO^T, dV += P^T dO,
//      dK += dS^T Q.
// S and dP are computed twice, seven products instead of five, so that every sum has one owner and lives in
// registers: nothing is added across warpgroups, and the transposed scores of phase 2 are operands as they
// stand. The second phase finds most of what it reads in the L2 cache.
//
// Three warpgroups, each of which waits for its own products: what one leaves idle, the other two use.
// Measured on an H200, two with registers enough to issue the next scores early are 3 % slower on sequences
// up to 512 tokens, and 6 % faster on 2,048.
struct BackwardShape {
  static constexpr int kWarpgroups = 3;
  static constexpr int kStages = 9;
  static constexpr int kFeederRegisters = 32;
  static constexpr int kWorkerRegisters = 160;
  static constexpr int kThreads = 128 * (kWarpgroups + 1);
  static_assert(registers_suffice(kWarpgroups, kFeederRegisters, kWorkerRegisters));

  using Ring = RingBarriers<kStages>;
  using Cursor = RingCursor<kStages>;
  using Plan = ItemPlan<kStages, kWarpgroups>;
  using Deal = BlockDeal<kStages, kWarpgroups>;
  using OwnedRing = RingBarriers<1>;
  using OwnedCursor = RingCursor<1>;
};

/// Of a query: what turns its scores into weights, P = 2^(S scale_log2 + shift), and its D = sum of dO * O.
struct QueryStatistics {
  float shift;
  float delta;
};

struct BackwardShared {
  /// Keys and values in phase 1, queries and dO in phase 2.
  alignas(1024) unsigned char streamed[2][BackwardShape::kStages][kTileBytes];
  /// Queries, dO and O in phase 1, keys and values in phase 2.
  alignas(1024) unsigned char own[BackwardShape::kWarpgroups][3][kTileBytes];
  alignas(16) QueryStatistics streamed_statistics[BackwardShape::kStages][kTileRows];
  float own_shifts[BackwardShape::kWarpgroups][kTileRows];
  BackwardShape::Ring ring;
  BackwardShape::OwnedRing owned[BackwardShape::kWarpgroups];
  ItemQueue queue;
  Mbarrier statistics_written;  ///< to global memory, of all queries of the item
};

/// Which phases a launch runs. A tile that is a whole sequence goes through both at once; of longer
/// sequences, phase 2 needs statistics of other tiles and waits for a second launch.
enum class BackwardLaunch { First, Second };

struct BackwardParameters {
  ItemSource items;
  GapList gaps;
  const float* lse_HT;
  __nv_bfloat16* dqkv_T3HK;
  QueryStatistics* statistics_HT;
  int num_rows;
  int num_heads;
  float scale;  ///< 1 / sqrt K
  AttentionKeepBits keep;
  float dropout_scale;
};

struct BackwardMaps {
  CUtensorMap qkv;
  CUtensorMap context;
  CUtensorMap dcontext;
};

/// Where the three parts of a head begin in a row of qkv.
__device__ inline int column_of(const BackwardParameters& p, int part, int head) {
  return (part * p.num_heads + head) * kTileRows;
}

__device__ inline bool is_whole(const AttentionItem& item) {
  return item.length <= kAttentionTileRows;
}

template <BackwardLaunch kLaunch>
__device__ inline bool has_phase1() {
  return kLaunch == BackwardLaunch::First;
}
template <BackwardLaunch kLaunch>
__device__ inline bool has_phase2(const AttentionItem& item) {
  return is_whole(item) == (kLaunch == BackwardLaunch::First);
}

}  // namespace plenum::kernels::cuda
