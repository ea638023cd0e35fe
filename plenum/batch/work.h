#pragma once

#include <cstdint>

#include "plenum/batch/label_counts.h"

namespace plenum::batch {

/// What a batch asks of a model, padding left out.
struct Work {
  std::int64_t tokens = 0;
  std::int64_t squared_lengths = 0;  ///< sum over sequences of length^2
  std::int64_t sequences = 0;
  LabelCounts labels = {};  ///< of each objective: what normalises its loss

  Work& operator+=(const Work& other);
};

}  // namespace plenum::batch
