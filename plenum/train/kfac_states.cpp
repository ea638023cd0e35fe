#include "plenum/train/kfac_states.h"

#include <fmt/format.h>

#include "plenum/workspace/kronecker.h"

namespace plenum::train {
namespace {

/// The names of a layer's maps, in the order of factor_shapes().
std::vector<std::string> map_names(const describe::Layer& layer) {
  std::vector<std::string> names;
  for (const describe::LinearMap* map : layer.maps()) {
    for (std::int64_t part = 0; part < map->num_parts; ++part)
      names.push_back(map->num_parts == 1 ? map->weight : fmt::format("{}.{}", map->weight, part));
  }
  return names;
}

/// Adds a tensor whose elements are words of four bytes; without values where no rank here has it.
void add(std::string name, std::vector<std::int64_t> sizes, const tensor::TensorView& view,
         std::vector<StateTensor>& states) {
  StateTensor& state = states.emplace_back();
  state.name = std::move(name);
  state.sizes = std::move(sizes);
  state.writer = view ? StateWriter::This : StateWriter::Other;
  if (view) state.values = {static_cast<float*>(view.raw()), view.num_bytes() / sizeof(float)};
}

memory::KfacMap owned_map(std::span<const memory::KfacMemory* const> ranks, std::size_t layer,
                          std::size_t map) {
  for (const memory::KfacMemory* rank : ranks) {
    const std::vector<memory::KfacMap>& maps = rank->layers[layer].maps;
    if (map < maps.size() && maps[map]) return maps[map];
  }
  return {};
}

}  // namespace

std::vector<StateTensor> kfac_states(const describe::ModelDescription& model,
                                     std::span<const memory::KfacMemory* const> ranks,
                                     memory::RunningAverages averages) {
  std::vector<StateTensor> states;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const std::vector<std::string> names = map_names(model.layers[layer]);
    const std::vector<describe::FactorShape> shapes = factor_shapes(model.layers[layer]);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const memory::KfacMap map = owned_map(ranks, layer, i);
      const auto [D, E] = shapes[i];
      add("kfac_state." + names[i], {workspace::kNumInverseStates, 2}, map.state_C, states);
      add("kfac_a_inverse." + names[i], {D, D}, map.inverse_a_DD, states);
      add("kfac_b_inverse." + names[i], {E, E}, map.inverse_b_EE, states);
      if (averages == memory::RunningAverages::No) continue;
      add("kfac_a." + names[i], {D, D}, map.average_a_DD, states);
      add("kfac_b." + names[i], {E, E}, map.average_b_EE, states);
    }
  }
  return states;
}

}  // namespace plenum::train
