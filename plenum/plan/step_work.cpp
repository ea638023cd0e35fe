#include "plenum/plan/step_work.h"

#include <algorithm>

namespace plenum::plan {

batch::Capacity largest_micro_batch(const std::vector<StepWork>& steps, const batch::Capacity& planned) {
  batch::Capacity largest{.max_length = planned.max_length};
  for (const StepWork& step : steps) {
    for (const MicroBatchWork& micro_batch : step.micro_batches) {
      largest.rows = std::max(largest.rows, micro_batch.rows);
      largest.sequences = std::max(largest.sequences, micro_batch.work.sequences);
      for (std::size_t i = 0; i < largest.labels.size(); ++i)
        largest.labels[i] = std::max(largest.labels[i], micro_batch.work.labels[i]);
    }
  }
  largest.rows = std::min(largest.rows, planned.rows);
  largest.sequences = std::min(largest.sequences, planned.sequences);
  for (std::size_t i = 0; i < largest.labels.size(); ++i)
    largest.labels[i] = std::min(largest.labels[i], planned.labels[i]);
  return largest;
}

}  // namespace plenum::plan
