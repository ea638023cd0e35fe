#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/message_order.h"
#include "plenum/schedule/simulate/simulate.h"

namespace plenum::schedule {

/// Times of a layer for one micro-batch; everything else is free.
struct LayerTimes {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
};

class UnitCosts final : public CostModel {
 public:
  explicit UnitCosts(LayerTimes times = {}) : times_(times) {}

  double seconds(Rank, const Action& action) const override {
    const double layers = action.end_layer.value - action.first_layer.value;
    switch (action.type) {
      case ActionType::Forward:
      case ActionType::Recompute:
        return layers * times_.forward;
      case ActionType::Backward:
        return layers * (times_.input_gradient + times_.weight_gradient);
      case ActionType::InputGradient:
        return layers * times_.input_gradient;
      case ActionType::WeightGradient:
        return layers * times_.weight_gradient;
      default:
        return 0;
    }
  }
  double latency_seconds(Rank, Rank) const override { return 0; }

 private:
  LayerTimes times_;
};

inline Schedule generate(std::string_view name, const GeneratorOptions& options) {
  Schedule schedule = generator_named(name).generate(options);
  require_well_formed(schedule);
  return schedule;
}

/// Those that lay stages on a row of ranks.
inline std::vector<std::string_view> pipeline_names() {
  std::vector<std::string_view> names;
  for (const Generator& generator : all_generators()) {
    if (generator.is_pipeline()) names.push_back(generator.name);
  }
  return names;
}

/// With messages in the order that suits these times.
inline Simulation simulated(std::string_view name, const GeneratorOptions& options, LayerTimes times = {}) {
  Schedule schedule = generate(name, options);
  const UnitCosts costs(times);
  EXPECT_TRUE(order_messages(schedule, costs));
  return simulate(schedule, costs);
}

inline double step_seconds(std::string_view name, const GeneratorOptions& options, LayerTimes times = {}) {
  return simulated(name, options, times).step_seconds;
}

/// For each rank, the most layers whose activations it keeps at a time: a forward adds its layers, a backward
/// or weight gradient removes them.
inline std::vector<std::size_t> peak_activations(const Schedule& schedule) {
  std::vector<std::size_t> peaks;
  for (const RankProgram& rank : schedule.ranks) {
    std::size_t kept = 0;
    std::size_t peak = 0;
    for (const Action& action : rank.lane(Lane::Compute).actions()) {
      const std::size_t layers = action.end_layer.index() - action.first_layer.index();
      if (action.type == ActionType::Forward) kept += layers;
      peak = std::max(peak, kept);
      if (action.type == ActionType::Backward || action.type == ActionType::WeightGradient) kept -= layers;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace plenum::schedule
