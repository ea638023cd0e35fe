#include "plenum/describe/model_description.h"

#include <algorithm>
#include <numeric>

namespace plenum::describe {

std::vector<const Table*> Embedding::tables() const {
  std::vector<const Table*> all = {&words};
  if (positions) all.push_back(&*positions);
  if (segments) all.push_back(&*segments);
  return all;
}

std::int64_t Attention::projected_width() const {
  return std::accumulate(projections.begin(), projections.end(), std::int64_t{0},
                         [](std::int64_t sum, const LinearMap& map) { return sum + map.out_width; });
}

std::vector<const LinearMap*> Layer::maps() const {
  std::vector<const LinearMap*> all;
  for (const LinearMap& projection : attention.projections) all.push_back(&projection);
  all.insert(all.end(), {&attention.output, &mlp.in, &mlp.out});
  return all;
}

std::vector<const LinearMap*> Head::maps() const {
  if (!transform) return {&output};
  return {&*transform, &output};
}

std::vector<Objective> ModelDescription::objectives() const {
  std::vector<Objective> all;
  for (const Head& head : heads) all.push_back(head.objective);
  return all;
}

std::vector<FactorShape> factor_shapes(const Layer& layer) {
  std::vector<FactorShape> shapes;
  for (const LinearMap* map : layer.maps()) {
    const FactorShape part{.in_width = map->in_width, .out_width = map->out_width / map->num_parts};
    shapes.insert(shapes.end(), static_cast<std::size_t>(map->num_parts), part);
  }
  return shapes;
}

std::int64_t attended_pairs(std::int64_t length, std::optional<std::int64_t> window) {
  const std::int64_t farthest = std::min(window.value_or(length), length - 1);
  // Each distance d in both directions: length - d pairs.
  return length + 2 * farthest * length - farthest * (farthest + 1);
}

}  // namespace plenum::describe
