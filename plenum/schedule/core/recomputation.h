#pragma once

#include <cstdint>

namespace plenum::schedule {

/// What a forward leaves for Recompute actions to compute again, layer by layer, before the layer's backward.
/// The same bytes come out.
enum class Recomputation : std::uint8_t {
  None,  ///< nothing: a forward keeps all that its backward reads
  Mlp,   ///< the inner activations of every MLP
  Full,  ///< everything but the input of every layer
};

}  // namespace plenum::schedule
