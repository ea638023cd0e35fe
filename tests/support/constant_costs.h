#pragma once

#include <array>
#include <initializer_list>
#include <utility>

#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::test {

/// Seconds by type of action, per layer where the type names layers; what is not named is free. The pieces of
/// a split action share its time.
class ConstantCosts final : public schedule::CostModel {
 public:
  ConstantCosts(std::initializer_list<std::pair<schedule::ActionType, double>> seconds_per_layer,
                double latency_seconds = 0)
      : latency_seconds_(latency_seconds) {
    for (const auto& [type, seconds] : seconds_per_layer) seconds_[static_cast<std::size_t>(type)] = seconds;
  }

  double seconds(schedule::Rank, const schedule::Action& action) const override {
    const bool has_layers = schedule::traits_of(action.type).layers != schedule::ActionTraits::Layers::None;
    const double num_layers = has_layers ? action.end_layer.value - action.first_layer.value : 1;
    return seconds_[static_cast<std::size_t>(action.type)] * num_layers / action.num_pieces;
  }
  double latency_seconds(schedule::Rank, schedule::Rank) const override { return latency_seconds_; }

 private:
  std::array<double, schedule::kNumActionTypes> seconds_ = {};
  double latency_seconds_;
};

}  // namespace plenum::test
