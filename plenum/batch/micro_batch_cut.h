#pragma once

#include <cstdint>
#include <optional>

namespace plenum::batch {

/// How a replica's part of a step is cut into micro-batches.
struct MicroBatchCut {
  /// Rows that the user allows; if nothing is said, as data::bound_steps says.
  std::optional<std::int64_t> tokens = {};
  /// Into so many, by cost; if nothing is said, they are filled.
  std::optional<std::int64_t> count = {};

  friend bool operator==(const MicroBatchCut&, const MicroBatchCut&) = default;
  friend auto operator<=>(const MicroBatchCut&, const MicroBatchCut&) = default;
};

}  // namespace plenum::batch
