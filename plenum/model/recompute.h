#pragma once

#include <cstdint>

namespace plenum::model {

/// What backward computes again instead of forward keeping it. The same bytes come out.
enum class Recompute : std::uint8_t {
  None,
  Mlp,   ///< the inner activations of every MLP, and what dropout keeps of attention's weights
  Full,  ///< everything but the input of every layer
};

}  // namespace plenum::model
