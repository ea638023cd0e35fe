#pragma once

#include <span>
#include <vector>

#include "plenum/schedule/simulate/factor_shares.h"
#include "plenum/schedule/simulate/layer_profile.h"

namespace plenum::schedule {

/// What the second-order work on a linear map keeps in memory.
struct MapBytes {
  double input_bytes = 0;            ///< its input, for a micro-batch of mean size
  double output_gradient_bytes = 0;  ///< likewise
  double factor_bytes = 0;           ///< A and B
};

/// What a profile's layer keeps of each of its maps: inputs and output gradients by their widths, factors by
/// their squares.
std::vector<MapBytes> map_bytes(const LayerCosts& layer, std::span<const LinearMap> maps);

}  // namespace plenum::schedule
