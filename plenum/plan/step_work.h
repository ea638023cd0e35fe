#pragma once

#include <cstdint>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/work.h"

namespace plenum::plan {

/// What a rank computes on for one micro-batch.
struct MicroBatchWork {
  std::int64_t rows = 0;  ///< padding included
  batch::Work work;       ///< padding left out
};

/// Those of a step, by the schedule's ids. One without rows is empty: nothing is done for it.
struct StepWork {
  std::vector<MicroBatchWork> micro_batches;
};

/// What steps reach of what is planned for them.
struct LargestStep {
  batch::Capacity micro_batch;  ///< the most that one has
  std::int64_t tokens = 0;
};
/// Of these, the most; of an objective that is planned for at least one label, as what is laid out for none
/// is less. `planned` is what no micro-batch exceeds.
LargestStep largest_step(const std::vector<StepWork>& steps, const batch::Capacity& planned);

}  // namespace plenum::plan
