#pragma once

#include <functional>
#include <utility>

#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::schedule {

/// Costs from a function of rank and action.
class FunctionCosts final : public CostModel {
 public:
  using Seconds = std::function<double(Rank, const Action&)>;

  explicit FunctionCosts(Seconds seconds, double latency_seconds = 0)
      : seconds_(std::move(seconds)), latency_seconds_(latency_seconds) {}

  double seconds(Rank rank, const Action& action) const override { return seconds_(rank, action); }
  double latency_seconds(Rank, Rank) const override { return latency_seconds_; }

 private:
  Seconds seconds_;
  double latency_seconds_;
};

}  // namespace plenum::schedule
