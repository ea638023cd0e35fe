#pragma once

#include <cstdint>

namespace plenum::schedule {

/// What the holders of a stage divide among themselves (ZeRO: Rajbhandari et al., 2020).
enum class Sharding : std::uint8_t {
  None,
  Optimizer,   ///< the update and what it keeps (ZeRO-1)
  Gradients,   ///< and the gradients, which are reduced after every micro-batch (ZeRO-2)
  Parameters,  ///< and the parameters, which are gathered for every pass over a micro-batch (ZeRO-3)
};

}  // namespace plenum::schedule
