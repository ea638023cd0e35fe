#pragma once

#include <vector>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/value_kinds.h"

namespace plenum::schedule {

/// Values of one action, which Inputs and Outputs gather.
class Dataflow::ActionValues {
 public:
  ActionValues(const Dataflow& flow, Rank rank, const Action& action, std::vector<ValueRef>& values)
      : flow_(flow), rank_(rank), action_(action), values_(values) {}

 protected:
  void add(std::uint32_t index, std::uint8_t age = 0) { values_.push_back({index, age}); }
  void add_layers(LayerValueKind kind) {
    flow_.add_layers(rank_, action_.stage, action_.first_layer, action_.end_layer, kind, values_);
  }
  void add_factor(std::uint32_t kind) {
    add(flow_.factor_value(rank_, action_.stage, action_.first_layer, action_.factor, kind), action_.age);
  }
  void add_of_rank(RankValueKind kind, std::uint8_t age = 0) {
    add(flow_.ranks_[rank_.index()].rank_begin + kind, age);
  }

  std::uint32_t first_segment() const { return flow_.segment_of(action_.first_layer); }
  std::uint32_t last_segment() const { return flow_.segment_of(LayerId::at(action_.end_layer.index() - 1)); }
  template <typename Visit>
  void for_each_segment(Visit visit) const {
    for (std::uint32_t segment = first_segment(); segment <= last_segment(); ++segment) visit(segment);
  }

  /// Calls visit(invert) with the inversion of every linear map of the action's layers that the rank owns.
  template <typename Visit>
  void for_each_own_map(Visit visit) const {
    Action map{.type = ActionType::Invert, .age = action_.age, .stage = action_.stage};
    for (LayerId layer = action_.first_layer; layer < action_.end_layer; ++layer.value) {
      map.first_layer = layer;
      map.end_layer = LayerId::at(layer.index() + 1);
      for (map.factor = 0; map.factor < flow_.schedule_.problem.num_factors; ++map.factor) {
        if (flow_.owner(map.stage, layer, map.factor) == rank_) visit(map);
      }
    }
  }

  const Dataflow& flow_;
  Rank rank_;
  const Action& action_;
  std::vector<ValueRef>& values_;
};

}  // namespace plenum::schedule
