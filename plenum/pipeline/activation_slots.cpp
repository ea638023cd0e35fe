#include "plenum/pipeline/activation_slots.h"

#include <algorithm>

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;

ActivationSlots::ActivationSlots(const schedule::Schedule& schedule, schedule::Rank rank)
    : num_micro_batches_(schedule.problem.num_micro_batches),
      slots_(schedule.num_steps() * num_micro_batches_, 0) {
  const schedule::LaneProgram& compute = schedule.ranks[rank.index()].lane(schedule::Lane::Compute);
  for (std::size_t step = 0; step < compute.num_steps(); ++step) {
    std::vector<bool> is_taken;
    for (const Action& action : compute.step(step)) {
      if (action.first_layer != schedule::LayerId{}) continue;  // neither begins nor ends a micro-batch
      if (action.type == ActionType::Forward) {
        const auto free = std::find(is_taken.begin(), is_taken.end(), false);
        const auto slot = static_cast<std::size_t>(free - is_taken.begin());
        if (free == is_taken.end()) is_taken.push_back(true);
        is_taken[slot] = true;
        slots_[step * num_micro_batches_ + action.micro_batch.index()] = slot;
      } else if (action.type == ActionType::Backward) {
        is_taken[slot(step, action.micro_batch)] = false;
      }
    }
    num_slots_ = std::max(num_slots_, is_taken.size());
  }
}

}  // namespace plenum::pipeline
