#pragma once

#include "plenum/workspace/attention.h"

namespace plenum::kernels::cuda {

// The memory that attention works in.

/// What belongs to a query beside its scores, in backward by mma.sync: log2 e times lse, and D = sum over k
/// of dO O. The half whose rows are queries writes them, the other reads.
struct QueryStatistics {
  float lse;
  float d;
};
static_assert(sizeof(QueryStatistics) == workspace::kQueryStatisticsBytes);

using AttentionScratch = workspace::GpuAttentionScratch;
using workspace::attention_scratch_bytes_sm80;
using workspace::attention_scratch_bytes_sm90;
using workspace::kBlockBytesSm90;
using workspace::kBlockRowsSm90;
using workspace::kKeepBlockColumns;
using workspace::kKeepRowsBehind;
using workspace::kKeepWords;
using workspace::kMaxThreadBlocksSm90;
using workspace::num_blocks_sm90;

}  // namespace plenum::kernels::cuda
