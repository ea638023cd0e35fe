#include "plenum/memory/hidden_matrices.h"

#include <algorithm>
#include <cstddef>

namespace plenum::memory {
namespace {

using workspace::FlatMatrices;

/// Of how many matrices a map's weight consists.
std::int64_t num_parts(const describe::ParameterTable& table, const describe::Parameter& parameter) {
  const std::vector<const describe::LinearMap*> maps = table.model().layers[parameter.part_index].maps();
  const auto map = std::ranges::find(maps, parameter.name, &describe::LinearMap::weight);
  return map == maps.end() ? 1 : (*map)->num_parts;
}

/// Adds those that a parameter consists of.
void add_matrices(const describe::Parameter& parameter, std::int64_t num_parts,
                  std::vector<FlatMatrices>& matrices) {
  for (std::int64_t part = 0; part < num_parts; ++part) {
    matrices.push_back({.begin = parameter.begin + part * (parameter.num_elements() / num_parts),
                        .count = 1,
                        .rows = parameter.shape[0] / num_parts,
                        .columns = parameter.shape[1],
                        .is_decayed = parameter.is_decayed});
  }
}

/// Makes a matrix the next of a group. Returns false, with nothing done, where it does not follow.
bool extend(FlatMatrices& group, const FlatMatrices& next) {
  const bool is_alike = group.rows == next.rows && group.columns == next.columns &&
                        group.is_decayed == next.is_decayed && next.begin > group.begin;
  const std::int64_t stride = next.begin - group.begin_of(group.count - 1);
  if (!is_alike || (group.count > 1 && stride != group.stride)) return false;
  group.stride = stride;
  ++group.count;
  return true;
}

}  // namespace

std::vector<FlatMatrices> matrices_of_layer(const describe::ParameterTable& table, std::size_t layer) {
  std::vector<FlatMatrices> matrices;
  for (const describe::LinearMap* map : table.model().layers[layer].maps())
    add_matrices(table[table.index_of(map->weight)], map->num_parts, matrices);
  return matrices;
}

std::vector<FlatMatrices> hidden_matrices(const describe::ParameterTable& table) {
  // By layer, in the order of the flat buffers.
  std::vector<std::vector<FlatMatrices>> layers(table.model().layers.size());
  std::size_t most = 0;
  for (const describe::Parameter& parameter : table.parameters()) {
    if (!describe::is_hidden_matrix(parameter) || parameter.num_elements() == 0) continue;
    std::vector<FlatMatrices>& own = layers[layers.size() - 1 - parameter.part_index];
    add_matrices(parameter, num_parts(table, parameter), own);
    most = std::max(most, own.size());
  }
  std::vector<FlatMatrices> groups;
  for (std::size_t map = 0; map < most; ++map) {
    const std::size_t first = groups.size();
    for (const std::vector<FlatMatrices>& layer : layers) {
      if (map >= layer.size()) continue;
      if (groups.size() == first || !extend(groups.back(), layer[map])) groups.push_back(layer[map]);
    }
  }
  return groups;
}

}  // namespace plenum::memory
