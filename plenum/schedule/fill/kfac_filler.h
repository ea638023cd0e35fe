#pragma once

#include <vector>

#include "plenum/schedule/fill/filler.h"
#include "plenum/schedule/fill/map_bytes.h"

namespace plenum::schedule {

/// K-FAC (Martens and Grosse, 2015; in bubbles: Osawa et al., 2022): A of every layer, linear map and
/// micro-batch after its forward, B after its backward, their reduction where a stage has several holders,
/// and one inversion for each map by the holder that owns it. Every step preconditions its gradients, layer
/// by layer.
class KfacFiller final : public Filler {
 public:
  /// One entry for each linear map of a layer.
  explicit KfacFiller(std::vector<MapBytes> maps, std::size_t max_pieces = 128);
  explicit KfacFiller(std::size_t num_factors) : KfacFiller(std::vector<MapBytes>(num_factors)) {}

  std::string_view name() const override { return "kfac"; }
  void change(Problem& problem) const override;
  void add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const override;
  void add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const override;

 private:
  void add_statistics(const Dataflow& dataflow, Rank rank, const Action& map,
                      std::vector<WorkItem>& items) const;

  std::vector<MapBytes> maps_;
  std::size_t max_pieces_;
};

}  // namespace plenum::schedule
