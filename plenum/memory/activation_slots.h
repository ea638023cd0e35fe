#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/memory/activation_layout.h"
#include "plenum/schedule/core/rank_slots.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::memory {

/// Which memory each micro-batch keeps its activations in on a rank. Each stage of the rank has slots of its
/// own; in one lies all that the stage has of a micro-batch, from the first of its forwards, or from when the
/// message that is its input may come, to the last of its backwards, or until what it sends has surely come:
/// as few slots as the schedule lets be taken at the same time.
class ActivationSlots {
 public:
  ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank);

  /// What there is to be memory for, by stage of the rank.
  const TrainingRequest& request() const { return request_; }
  /// The place of a stage among those of the rank. Throws InternalError if the rank does not hold it.
  std::size_t stage_index(schedule::StageId stage) const;
  /// In that step of training, among the slots of its stage.
  std::size_t slot(std::uint64_t step, schedule::StageId stage, schedule::MicroBatchId micro_batch) const;

 private:
  struct StageSlots {
    schedule::StageId stage;
    schedule::LayerId first_layer;
    schedule::RankSlots slots;
  };

  std::vector<StageSlots> stages_;
  TrainingRequest request_;
};

}  // namespace plenum::memory
