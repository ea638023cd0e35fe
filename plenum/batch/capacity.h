#pragma once

#include <cstdint>

#include "plenum/batch/label_counts.h"

namespace plenum::batch {

/// How large micro-batches may be: what memory is planned for.
struct Capacity {
  std::int64_t rows = 0;  ///< padding included
  std::int64_t sequences = 0;
  LabelCounts labels = {};      ///< of each objective
  std::int64_t max_length = 0;  ///< of a sequence

  /// What heads may read of the last layer's output.
  std::int64_t read() const { return total(labels); }

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

}  // namespace plenum::batch
