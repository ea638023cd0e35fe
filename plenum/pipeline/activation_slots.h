#pragma once

#include <cstddef>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::pipeline {

/// Which memory each micro-batch of a rank keeps its activations in, from the first of its forwards to the
/// last of its backwards: as few places as the schedule lets be alive at the same time.
class ActivationSlots {
 public:
  /// Of a schedule of one stage, whose activations do not outlive their step.
  ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank);

  std::size_t num_slots() const { return num_slots_; }
  /// In the step of that index of the schedule's cycle.
  std::size_t slot(std::size_t step_index, schedule::MicroBatchId micro_batch) const {
    return slots_[step_index * num_micro_batches_ + micro_batch.index()];
  }

 private:
  std::size_t num_micro_batches_;
  std::size_t num_slots_ = 0;
  std::vector<std::size_t> slots_;
};

}  // namespace plenum::pipeline
