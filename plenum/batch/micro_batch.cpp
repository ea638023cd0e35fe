#include "plenum/batch/micro_batch.h"

#include "plenum/base/check.h"

namespace plenum::batch {

const ObjectiveRows& MicroBatch::objective(std::size_t index) const {
  static const ObjectiveRows none;
  return index < objectives.size() ? objectives[index] : none;
}

Work MicroBatch::work() const {
  base::check(objectives.size() <= kMostObjectives, "a micro-batch has too many objectives: {}",
              objectives.size());
  Work work{.sequences = static_cast<std::int64_t>(starts.size())};
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    work.labels[i] = static_cast<std::int64_t>(objectives[i].labels.size());
  }
  for (const std::int64_t length : lengths) {
    work.tokens += length;
    work.squared_lengths += length * length;
  }
  return work;
}

}  // namespace plenum::batch
