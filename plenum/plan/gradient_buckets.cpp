#include "plenum/plan/gradient_buckets.h"

#include <algorithm>
#include <vector>

namespace plenum::plan {

std::size_t num_gradient_buckets(const describe::ParameterTable& table, std::int64_t bucket_bytes) {
  const std::size_t num_layers = table.model().layers.size();
  std::vector<std::int64_t> bytes_of_layers(num_layers);
  for (const describe::Parameter& parameter : table.parameters()) {
    if (parameter.part != describe::ModelPart::Layer) continue;
    bytes_of_layers[parameter.part_index] +=
        parameter.num_elements() * static_cast<std::int64_t>(sizeof(float));
  }
  const std::int64_t largest = std::max<std::int64_t>(1, std::ranges::max(bytes_of_layers));
  const auto layers_of_bucket = static_cast<std::size_t>(std::max<std::int64_t>(1, bucket_bytes / largest));
  return (num_layers + layers_of_bucket - 1) / layers_of_bucket;
}

}  // namespace plenum::plan
