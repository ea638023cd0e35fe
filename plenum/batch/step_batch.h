#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/batch/micro_batch.h"
#include "plenum/batch/work.h"

namespace plenum::batch {

/// What one training step works on, or the part of it that one rank holds.
struct StepBatch {
  std::uint64_t step = 0;   ///< of training, from 0
  std::uint64_t epoch = 0;  ///< names the random numbers of dropout and masking
  Work global;              ///< over all micro-batches and ranks: the counts by which losses are normalised
  std::vector<std::int64_t> global_rows;  ///< of every micro-batch of every rank, padding included
  std::vector<Work> work;                 ///< of every micro-batch of every rank, by the schedule's ids
  /// Those with the schedule's ids from first_micro_batch on: all, or those of one rank.
  std::vector<MicroBatch> micro_batches;
  std::size_t first_micro_batch = 0;
};

}  // namespace plenum::batch
