#pragma once

#include <cstdint>

#include "plenum/schedule/fill/filler.h"

namespace plenum::schedule {

/// Muon (Jordan et al., 2024): every step makes its clipped gradients orthogonal, each by the holder that
/// owns its linear map. Nothing of it lags behind training.
class MuonFiller final : public Filler {
 public:
  /// `num_maps`: linear maps of a layer.
  explicit MuonFiller(std::size_t num_maps);

  std::string_view name() const override { return "muon"; }
  void change(Problem& problem) const override;
  void add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const override;
  void add_refresh(const Dataflow& /*dataflow*/, Rank /*rank*/,
                   std::vector<WorkItem>& /*items*/) const override {}

 private:
  std::size_t num_maps_;
};

}  // namespace plenum::schedule
