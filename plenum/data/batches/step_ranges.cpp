#include "plenum/data/batches/step_ranges.h"

#include "plenum/base/check.h"

namespace plenum::data {

StepRanges::StepRanges(std::uint64_t num_items, std::uint64_t items_per_step)
    : num_items_(num_items), items_per_step_(items_per_step) {
  base::check(num_items >= 1 && items_per_step >= 1, "an epoch must have steps: items={} items per step={}",
              num_items, items_per_step);
  num_steps_ = (num_items - 1) / items_per_step + 1;
}

PositionRange StepRanges::range(std::uint64_t step) const {
  base::check(step < num_steps_, "there is no such step: step={} steps={}", step, num_steps_);
  return {first_position(step), first_position(step + 1)};
}

std::uint64_t StepRanges::first_position(std::uint64_t step) const {
  if (step == num_steps_) return num_items_;
  if (step == 0 || step + 1 < num_steps_) return step * items_per_step_;
  const std::uint64_t begin_of_last_two = (num_steps_ - 2) * items_per_step_;
  const std::uint64_t left_for_them = num_items_ - begin_of_last_two;
  return begin_of_last_two + (left_for_them - left_for_them / 2);
}

}  // namespace plenum::data
