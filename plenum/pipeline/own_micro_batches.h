#pragma once

#include <algorithm>
#include <cstddef>

#include "plenum/schedule/core/schedule.h"

namespace plenum::pipeline {

/// The micro-batches of a schedule that a rank works on, and those between them: ids from first on.
struct OwnMicroBatches {
  OwnMicroBatches(const schedule::Schedule& schedule, schedule::Rank rank) {
    std::size_t end = 0;
    first = schedule.problem.num_micro_batches;
    for (const schedule::Action& action :
         schedule.ranks[rank.index()].lane(schedule::Lane::Compute).actions()) {
      if (action.type != schedule::ActionType::Forward) continue;
      first = std::min(first, action.micro_batch.index());
      end = std::max(end, action.micro_batch.index() + 1);
    }
    count = end > first ? end - first : 0;
  }

  std::size_t first = 0;
  std::size_t count = 0;
};

}  // namespace plenum::pipeline
