#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace plenum::plan
