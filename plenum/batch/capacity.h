#pragma once

#include <cstdint>

namespace plenum::batch {

/// How large micro-batches may be: what memory is planned for.
struct Capacity {
  std::int64_t rows = 0;  ///< padding included
  std::int64_t sequences = 0;
  std::int64_t masked = 0;
  std::int64_t max_length = 0;  ///< of a sequence

  /// What heads may read of the last layer's output.
  std::int64_t read() const { return masked + sequences; }

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

}  // namespace plenum::batch
