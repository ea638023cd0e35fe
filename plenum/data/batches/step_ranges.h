#pragma once

#include <cstdint>

namespace plenum::data {

/// A range of positions in an epoch's order.
struct PositionRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const { return end - begin; }
};

/// How the items of an epoch are cut into steps, nothing lost and nothing repeated: there are
/// ceil(items / items_per_step) steps, and the last two share evenly what is left for them. So all steps but
/// the last two have exactly items_per_step items, those two at least half of it (unless the epoch is one
/// step), and none has more. A last step of its own could be a single item, whose noisy gradient would count
/// as much as a full one.
class StepRanges {
 public:
  /// Both at least 1.
  StepRanges(std::uint64_t num_items, std::uint64_t items_per_step);

  std::uint64_t num_items() const { return num_items_; }
  std::uint64_t items_per_step() const { return items_per_step_; }
  std::uint64_t num_steps() const { return num_steps_; }

  /// step < num_steps().
  PositionRange range(std::uint64_t step) const;

 private:
  std::uint64_t first_position(std::uint64_t step) const;

  std::uint64_t num_items_;
  std::uint64_t items_per_step_;
  std::uint64_t num_steps_;
};

}  // namespace plenum::data
