#include "plenum/memory/divided_layers.h"

#include "plenum/base/check.h"
#include "plenum/memory/hidden_matrices.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::memory {

std::vector<DividedLayer> divided_layers(const describe::ParameterTable& table,
                                         const schedule::Schedule& schedule, schedule::Rank rank) {
  if (!schedule::follows_agreement(schedule.problem.preconditioner)) return {};
  const schedule::Dataflow dataflow(schedule);
  std::vector<DividedLayer> layers(dataflow.layers().total());
  for (const schedule::StageId stage : schedule.ranks[rank.index()].stages) {
    for (schedule::LayerId layer = dataflow.layers().first(stage); layer < dataflow.layers().end(stage);
         ++layer.value) {
      const std::vector<workspace::FlatMatrices> matrices = matrices_of_layer(table, layer.index());
      base::check(matrices.size() == schedule.problem.num_factors, "a layer has {} maps, the schedule {}",
                  matrices.size(), schedule.problem.num_factors);
      for (std::uint16_t map = 0; map < matrices.size(); ++map) {
        DividedLayer& divided = layers[layer.index()];
        const bool is_own = dataflow.owner(stage, layer, map) == rank;
        (is_own ? divided.own : divided.others).push_back(matrices[map]);
        if (is_own) divided.own_maps.push_back(map);
      }
    }
  }
  return layers;
}

std::vector<workspace::FlatMatrices> own_matrices(const std::vector<DividedLayer>& layers) {
  std::vector<workspace::FlatMatrices> matrices;
  for (const DividedLayer& layer : layers)
    matrices.insert(matrices.end(), layer.own.begin(), layer.own.end());
  return matrices;
}

std::vector<workspace::FlatMatrices> matrices_of_others(const std::vector<DividedLayer>& layers) {
  std::vector<workspace::FlatMatrices> matrices;
  for (const DividedLayer& layer : layers)
    matrices.insert(matrices.end(), layer.others.begin(), layer.others.end());
  return matrices;
}

}  // namespace plenum::memory
