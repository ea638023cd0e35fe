#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plenum/data/batches/step_batches.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/step_work.h"

namespace plenum::train {

/// What every micro-batch of a step has, by the schedule's ids.
plan::StepWork step_work(const data::StepBatchSource& batches, const data::StepShares& shares);

/// Steps as training would have them, from lengths alone. For one thread at a time: how a step is shared out
/// is remembered for each number of replicas. Of many replicas few steps are looked at, since they differ
/// among themselves as much as steps do.
class StepWorks final : public plan::StepSampler {
 public:
  /// Borrows the sequences. Of `options` replicas and cut are the asker's. Throws UserError as
  /// data::StepBatchSource does.
  StepWorks(const data::SequenceSource& sequences, data::TrainingDataOptions options,
            const describe::ModelConfig& model, std::uint64_t seed, double attention_cost = 1);

  batch::Work typical() const override;
  double tokens_per_step() const override { return batches_.expected_tokens_per_step(); }
  std::size_t items_per_step() const override { return batches_.items_per_step(); }
  plan::StepLimits limits(std::size_t replicas, const batch::MicroBatchCut& cut) const override;
  std::vector<plan::StepWork> sample(std::size_t replicas, const batch::MicroBatchCut& cut,
                                     std::size_t num_steps) const override;

 private:
  data::TrainingDataOptions options_;
  data::StepBatchSource batches_;                                        ///< of one replica, filled
  mutable std::map<std::size_t, std::vector<data::StepShares>> shares_;  ///< by replicas
};

}  // namespace plenum::train
