#pragma once

#include <cstdint>

#include "plenum/base/check.h"

namespace plenum::kernels::cuda {

/// Columns that a block of a kernel over rows can take: 512 threads with eight each.
inline constexpr std::int64_t kMaxRowWidth = 4096;

/// Throws UserError where rows are too wide for the kernels over rows.
inline void require_row_width(std::int64_t width) {
  base::require(
      width <= kMaxRowWidth,
      "on the GPU a model has a width of at most {}; choose a smaller one or use the CPU: the width "
      "is {}",
      kMaxRowWidth, width);
}

}  // namespace plenum::kernels::cuda
