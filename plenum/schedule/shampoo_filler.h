#pragma once

#include "plenum/schedule/filler.h"

namespace plenum::schedule {

/// Shampoo and SOAP (Gupta et al., 2018; Vyas et al., 2024): every step accumulates the second moments of its
/// final gradients and preconditions with inverse roots (or eigenbases) that lag behind. A root needs only
/// the accumulated factor of some step, so it fits any bubble of any later step.
class ShampooFiller final : public Filler {
 public:
  explicit ShampooFiller(std::size_t num_factors = 6, std::size_t max_pieces = 128);

  std::string_view name() const override { return "shampoo"; }
  void change(Problem& problem) const override;
  void add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const override;
  void add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const override;

 private:
  std::uint16_t num_factors_;
  std::size_t max_pieces_;
};

}  // namespace plenum::schedule
