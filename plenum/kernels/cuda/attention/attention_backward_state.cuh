#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention/attention_scratch.h"
#include "plenum/kernels/cuda/attention/attention_sm90.h"
#include "plenum/kernels/cuda/attention/attention_stream.cuh"

namespace plenum::kernels::cuda {

// A thread block takes a head of a sequence at a time (see docs/math/attention.md for the formulas). In each
// of its rounds the three warpgroups that compute own a block of 64 keys each, and all blocks of 64 queries
// go by:
//     S^T = K Q^T,  dP^T = V dO^T,  dV += P^T dO,  dK += dS^T Q,  and then  dQ += dS K.
// dK and dV stay in the registers of their owner. dS goes through shared memory, from where one warpgroup
// multiplies the dS of all three with their keys: five products for each pair of blocks, and every sum has
// one owner and one order. Between rounds dQ waits in device memory in fp32, where the second-level cache
// keeps it.
//
// Rounds are as few as can be, of nearly equal size. Where one has fewer than three blocks of keys, the
// warpgroups without keys compute dQ, else they take turns. A turn comes two blocks of queries late: were it
// one, each turn would wait for the warpgroup that had the turn before.
struct BackwardShape {
  static constexpr int kWarpgroups = 3;
  static constexpr int kStages = 3;
  static constexpr int kExchanges = 3;
  static constexpr int kLag = 2;  ///< of dQ behind dS, in blocks of queries
  static constexpr int kStatisticsWarps = 2;
  static constexpr int kFeederRegisters = 32;
  static constexpr int kWorkerRegisters = 160;
  static constexpr int kThreads = 128 * (kWarpgroups + 1);
  static_assert(registers_suffice(kWarpgroups, kFeederRegisters, kWorkerRegisters));

  using Cursor = RingCursor<kStages>;
  using OwnedCursor = RingCursor<2>;
  using ExchangeCursor = RingCursor<kExchanges>;
};

/// How the keys of a sequence are cut into rounds.
struct KeyRounds {
  int num_blocks;
  int num_rounds;

  __device__ explicit KeyRounds(int length)
      : num_blocks(num_blocks_of(length)),
        num_rounds((num_blocks + BackwardShape::kWarpgroups - 1) / BackwardShape::kWarpgroups) {}

  __device__ int first(int round) const { return round * num_blocks / num_rounds; }
  __device__ int count(int round) const { return first(round + 1) - first(round); }
};

struct BackwardShared {
  alignas(1024) unsigned char keys[2][BackwardShape::kWarpgroups][kTileBytes];
  alignas(1024) unsigned char values[2][BackwardShape::kWarpgroups][kTileBytes];
  alignas(1024) unsigned char dscores[BackwardShape::kExchanges][BackwardShape::kWarpgroups]
                                     [kTileBytes];  ///< dS^T
  alignas(1024) unsigned char queries[BackwardShape::kStages][kTileBytes];
  alignas(1024) unsigned char dcontext[BackwardShape::kStages][kTileBytes];
  alignas(1024) unsigned char context[kTileBytes];  ///< in the first round
  /// Of a query, where its sums start. S = Q K^T starts from - L sqrt k, so that P = exp(S / sqrt k); dP = dO
  /// V^T from - D / f, with D = sum of dO * O and the scale f of dropout, so that dS = f P dP. The factor f
  /// comes last. With dropout dP starts from zero, and the center is added behind: dS = f P (dP - D / f)
  /// where a weight is kept, f P (- D / f) where it is dropped.
  alignas(16) float shifts[BackwardShape::kStages][kTileRows];
  alignas(16) float centers[BackwardShape::kStages][kTileRows];

  RingBarriers<2> owned;                              ///< of keys and values, for a round
  RingBarriers<BackwardShape::kStages> streamed;      ///< of queries and dO
  RingBarriers<1> outputs;                            ///< of O
  Mbarrier has_statistics[BackwardShape::kStages];    ///< beside streamed.full
  RingBarriers<BackwardShape::kExchanges> exchanged;  ///< of dS
  ItemQueue queue;
};
static_assert(sizeof(BackwardShared) <= kMostSharedBytes);

/// What a thread block keeps in device memory from round to round of an item.
struct BackwardScratch {
  static constexpr int kVectors = 8;  ///< of a thread, for a block of 64 queries
  float4* dqueries;                   ///< [thread blocks, max_blocks, kVectors, 128]: dQ so far
  float2* statistics;                 ///< [thread blocks, max_blocks, kTileRows]: shift and center
  int max_blocks;                     ///< of 64 rows of a sequence

  static_assert(kBlockRowsSm90 == kTileRows);
  static_assert(kBlockBytesSm90 == sizeof(float4) * kVectors * 128 + sizeof(float2) * kTileRows);
  __device__ float4* dqueries_of(int block) const {
    return dqueries + (static_cast<std::int64_t>(blockIdx.x) * max_blocks + block) * kVectors * 128;
  }
  __device__ float2* statistics_of(int block) const {
    return statistics + (static_cast<std::int64_t>(blockIdx.x) * max_blocks + block) * kTileRows;
  }
};

struct BackwardParameters {
  ItemSource items;
  GapList gaps;
  const float* lse_HT;
  __nv_bfloat16* dqkv_T3HK;
  int num_rows;
  int num_heads;
  float scale;  ///< 1 / sqrt K
  AttentionKeepBits keep;
  float dropout_scale;
  BackwardScratch scratch;
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

}  // namespace plenum::kernels::cuda
