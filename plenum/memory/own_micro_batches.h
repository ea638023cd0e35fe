#pragma once

#include <cstddef>

#include "plenum/schedule/core/schedule.h"

namespace plenum::memory {

/// The micro-batches of a schedule that a rank works on, and those between them: ids from first on.
struct OwnMicroBatches {
  OwnMicroBatches(const schedule::Schedule& schedule, schedule::Rank rank);

  std::size_t first = 0;
  std::size_t count = 0;
};

}  // namespace plenum::memory
