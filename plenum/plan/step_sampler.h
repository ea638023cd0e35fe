#pragma once

#include <cstddef>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch_cut.h"
#include "plenum/batch/work.h"
#include "plenum/plan/step_work.h"

namespace plenum::plan {

/// What every step keeps to, whichever sequences it draws.
struct StepLimits {
  std::size_t micro_batches_per_replica = 1;
  batch::Capacity capacity;  ///< of a micro-batch
};

/// What the steps of a run work on, for any number of replicas and any cut of their parts.
class StepSampler {
 public:
  virtual ~StepSampler() = default;

  /// The work of all sequences there are: what a step has in proportion.
  virtual batch::Work typical() const = 0;
  /// In the mean, over all replicas, padding left out.
  virtual double tokens_per_step() const = 0;
  /// What replicas share out in a step at most: sequences or packs.
  virtual std::size_t items_per_step() const = 0;
  /// Throws UserError for micro-batches that no item fits into.
  virtual StepLimits limits(std::size_t replicas, const batch::MicroBatchCut& cut) const = 0;
  /// Some steps of the run, at equal distances; by the ids that a schedule of so many replicas has.
  virtual std::vector<StepWork> sample(std::size_t replicas, const batch::MicroBatchCut& cut,
                                       std::size_t num_steps) const = 0;
};

}  // namespace plenum::plan
