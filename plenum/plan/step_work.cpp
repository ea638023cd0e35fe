#include "plenum/plan/step_work.h"

#include <algorithm>

namespace plenum::plan {

LargestStep largest_step(const std::vector<StepWork>& steps, const batch::Capacity& planned) {
  LargestStep largest{.micro_batch = {.max_length = planned.max_length}};
  batch::Capacity& most = largest.micro_batch;
  for (std::size_t i = 0; i < most.labels.size(); ++i)
    most.labels[i] = std::min<std::int64_t>(planned.labels[i], 1);
  for (const StepWork& step : steps) {
    std::int64_t tokens = 0;
    for (const MicroBatchWork& micro_batch : step.micro_batches) {
      tokens += micro_batch.work.tokens;
      most.rows = std::max(most.rows, micro_batch.rows);
      most.sequences = std::max(most.sequences, micro_batch.work.sequences);
      for (std::size_t i = 0; i < most.labels.size(); ++i)
        most.labels[i] = std::max(most.labels[i], micro_batch.work.labels[i]);
    }
    largest.tokens = std::max(largest.tokens, tokens);
  }
  return largest;
}

}  // namespace plenum::plan
