#include "plenum/memory/own_micro_batches.h"

#include <algorithm>

namespace plenum::memory {

OwnMicroBatches::OwnMicroBatches(const schedule::Schedule& schedule, schedule::Rank rank) {
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

}  // namespace plenum::memory
