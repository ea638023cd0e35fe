#pragma once

#include <functional>
#include <utility>

#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::test {

/// Costs from a function of rank and action.
class FunctionCosts final : public schedule::CostModel {
 public:
  using Seconds = std::function<double(schedule::Rank, const schedule::Action&)>;

  explicit FunctionCosts(Seconds seconds, double latency_seconds = 0)
      : seconds_(std::move(seconds)), latency_seconds_(latency_seconds) {}

  double seconds(schedule::Rank rank, const schedule::Action& action) const override {
    return seconds_(rank, action);
  }
  double latency_seconds(schedule::Rank, schedule::Rank) const override { return latency_seconds_; }

 private:
  Seconds seconds_;
  double latency_seconds_;
};

}  // namespace plenum::test
