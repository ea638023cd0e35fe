#pragma once

#include <cstdint>

#include "plenum/base/philox.h"
#include "plenum/kernels/dropout.h"

namespace plenum::reference {

/// What an activation is multiplied by: 0, or 1 / (1 - rate). Straight from the definition.
inline double dropout_factor(const kernels::Dropout& dropout, std::uint64_t sample, std::uint32_t position,
                             std::uint32_t channel) {
  if (!dropout.is_on()) return 1;
  const std::uint32_t layer_and_site = 4 * dropout.layer + static_cast<std::uint32_t>(dropout.site);
  const base::PhiloxCounter words = base::philox(
      {static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32) | (layer_and_site << 16),
       position, channel / 16},
      dropout.key);
  const std::uint32_t byte = (words[channel % 16 / 4] >> (8 * (channel % 4))) & 0xFF;
  return byte < dropout.threshold ? 0 : 256.0 / (256 - dropout.threshold);
}

}  // namespace plenum::reference
