#include "plenum/batch/sequence_offsets.h"

#include "plenum/base/check.h"

namespace plenum::batch {

void check_sequence_offsets(const SequenceOffsets& sequences) {
  base::check(sequences.starts.size() == sequences.lengths.size(),
              "sequences need a start and a length each: {} starts, {} lengths", sequences.starts.size(),
              sequences.lengths.size());
  std::int64_t end = 0;
  for (std::size_t s = 0; s < sequences.num_sequences(); ++s) {
    base::check(sequences.starts[s] >= end && sequences.lengths[s] >= 1,
                "sequences must be in order and not empty: sequence {} has start {} and length {}", s,
                sequences.starts[s], sequences.lengths[s]);
    end = std::int64_t{sequences.starts[s]} + sequences.lengths[s];
  }
  base::check(end <= sequences.num_rows, "sequences end behind the last row: {} of {}", end,
              sequences.num_rows);
}

}  // namespace plenum::batch
