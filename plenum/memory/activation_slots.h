#pragma once

#include <cstddef>

#include "plenum/schedule/core/rank_slots.h"

namespace plenum::memory {

/// Which memory each micro-batch of a rank keeps its activations in, all that it has from the first of its
/// forwards to the last of its backwards: as few places as the schedule lets be taken at the same time.
class ActivationSlots {
 public:
  /// Of a schedule of one stage.
  ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank);

  /// Whether the rank computes gradients of weights, or curvature, behind a backward, which then leaves
  /// LayerErrors.
  bool keeps_errors() const { return keeps_errors_; }
  std::size_t num_slots() const { return slots_.num_slots(schedule::TenantKind::Kept); }
  /// In that step of training.
  std::size_t slot(std::uint64_t step, schedule::MicroBatchId micro_batch) const {
    return slots_.slot({.kind = schedule::TenantKind::Kept, .micro_batch = micro_batch}, step);
  }

 private:
  schedule::RankSlots slots_;
  bool keeps_errors_;
};

}  // namespace plenum::memory
