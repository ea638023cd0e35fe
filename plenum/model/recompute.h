#pragma once

#include <cstdint>

namespace plenum::model {

/// What backward computes again instead of forward keeping it. The same bytes come out on the CPU; on a GPU
/// they agree to rounding (docs/math/bert.md).
enum class Recompute : std::uint8_t {
  None,
  Mlp,   ///< the inner activations of every MLP
  Full,  ///< everything but the input of every layer
};

}  // namespace plenum::model
