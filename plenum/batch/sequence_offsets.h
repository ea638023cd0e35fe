#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plenum::batch {

/// Which rows of a micro-batch belong to which sequence, borrowed. Sequence s has rows starts[s] ...
/// starts[s] + lengths[s] - 1. Sequences do not overlap and lie in increasing order; rows between and behind
/// them are padding, which belongs to none: nothing reads them, whatever they hold is finite, and their
/// gradients are zero.
struct SequenceOffsets {
  std::span<const std::int32_t> starts;   ///< of each sequence
  std::span<const std::int32_t> lengths;  ///< of each sequence, at least 1
  std::int64_t num_rows = 0;              ///< of the micro-batch, padding included

  std::size_t num_sequences() const { return starts.size(); }
};

/// Throws InternalError unless they are as they should be.
void check_sequence_offsets(const SequenceOffsets& sequences);

}  // namespace plenum::batch
