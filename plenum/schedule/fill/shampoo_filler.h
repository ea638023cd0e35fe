#pragma once

#include <vector>

#include "plenum/schedule/fill/filler.h"
#include "plenum/schedule/fill/map_bytes.h"

namespace plenum::schedule {

/// Shampoo and SOAP (Gupta et al., 2018; Vyas et al., 2024): every step accumulates the second moments of its
/// clipped gradients and preconditions with inverse roots (or eigenbases) that lag behind. A root needs only
/// the accumulated factor of some step, so it fits any bubble of any later step; until then the factor is
/// kept as it was.
class ShampooFiller final : public Filler {
 public:
  /// One entry for each linear map of a layer.
  explicit ShampooFiller(std::vector<MapBytes> maps, std::size_t max_pieces = 128);
  explicit ShampooFiller(std::size_t num_factors, std::size_t max_pieces = 128)
      : ShampooFiller(std::vector<MapBytes>(num_factors), max_pieces) {}

  std::string_view name() const override { return "shampoo"; }
  void change(Problem& problem) const override;
  void add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const override;
  void add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const override;

 private:
  std::vector<MapBytes> maps_;
  std::size_t max_pieces_;
};

}  // namespace plenum::schedule
