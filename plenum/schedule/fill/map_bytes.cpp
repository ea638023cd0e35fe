#include "plenum/schedule/fill/map_bytes.h"

namespace plenum::schedule {

std::vector<MapBytes> map_bytes(const LayerCosts& layer, std::span<const LinearMap> maps) {
  const FactorShares shares(maps);
  double total_out = 0;
  for (const LinearMap& map : maps) total_out += map.out_width;
  const double bytes_per_width = layer.saved_error_bytes / total_out;
  std::vector<MapBytes> bytes;
  for (std::size_t map = 0; map < maps.size(); ++map) {
    bytes.push_back({.input_bytes = maps[map].in_width * bytes_per_width,
                     .output_gradient_bytes = maps[map].out_width * bytes_per_width,
                     .factor_bytes = shares.factor_size(map) * layer.factor_bytes});
  }
  return bytes;
}

}  // namespace plenum::schedule
