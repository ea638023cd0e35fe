#pragma once

#include <cstdint>
#include <vector>

#include "plenum/batch/sequence_offsets.h"
#include "plenum/workspace/attention.h"

namespace plenum::kernels {

/// The lists from which attention's kernels of the GPU take their work, made by the host once for each
/// micro-batch. They lie in the GPU's memory with room for the longest, so that launches do not depend on
/// their contents.
struct AttentionWorkList {
  /// Runs of rows that a block takes, {first row of the sequence, its length, first row of the run within it,
  /// index of the sequence}, the longest sequences first.
  std::vector<std::int32_t> tiles_N4;
  /// Runs of rows that belong to no sequence, {first row, number of rows}: results are zero there.
  std::vector<std::int32_t> gaps_G2;
};
AttentionWorkList attention_work_list(const batch::SequenceOffsets& sequences);

using workspace::attention_launch_length;
using workspace::attention_work_capacity;
using workspace::AttentionWorkCapacity;

}  // namespace plenum::kernels
