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

/// What the micro-batches of these steps reach of the capacity that is planned for them.
batch::Capacity largest_micro_batch(const std::vector<StepWork>& steps, const batch::Capacity& planned);

}  // namespace plenum::plan
