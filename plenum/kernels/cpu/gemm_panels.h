#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/workspace/product.h"

// How a matrix product is cut into blocks and panels. For kernels/cpu/gemm.cpp and its test only.

namespace plenum::kernels::cpu {

/// [0, size) cut into pieces of nearly equal size, each but the last a multiple of `unit`.
struct Pieces {
  std::int64_t size = 0;
  std::int64_t piece = 1;

  Pieces(std::int64_t total, std::int64_t largest, std::int64_t unit) : size(total) {
    const std::int64_t count = std::max<std::int64_t>(1, (total + largest - 1) / largest);
    const std::int64_t even = (total + count - 1) / count;
    piece = std::max(unit, (even + unit - 1) / unit * unit);
  }
  std::int64_t count() const { return (size + piece - 1) / piece; }
  std::int64_t begin(std::int64_t index) const { return index * piece; }
  std::int64_t length(std::int64_t index) const { return std::min(piece, size - index * piece); }
};

/// Columns of B that are packed at a time, and the most that a panel has.
inline constexpr std::int64_t kBlockColumns = workspace::kGemmColumns;

/// How C is cut into panels, each of which is one task.
struct Panels {
  Pieces rows;
  Pieces columns;

  std::int64_t count() const { return rows.count() * columns.count(); }
};

/// The panels of a product C [m, n] that these threads are estimated to end soonest with. Since the order of
/// every sum depends on k alone, the cut may depend on the number of threads.
Panels panels_of(std::int64_t m, std::int64_t n, std::size_t num_threads);

}  // namespace plenum::kernels::cpu
