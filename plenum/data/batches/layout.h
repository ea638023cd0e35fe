#pragma once

#include <string_view>

namespace plenum::data {

/// How sequences lie in a micro-batch.
enum class Layout {
  Padded,    ///< each at the beginning of as many rows as the longest there is has; the rest is padding
  Packed,    ///< the packs of a packing plan, each in as many rows as a pack may hold
  Unpadded,  ///< end to end
};

/// What the order of training shuffles and counts: sequences, or the packs of a packing plan.
enum class OrderUnit { Sequences, Packs };

/// "padded", "packed" or "unpadded".
constexpr std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::Padded:
      return "padded";
    case Layout::Packed:
      return "packed";
    case Layout::Unpadded:
      break;
  }
  return "unpadded";
}

}  // namespace plenum::data
