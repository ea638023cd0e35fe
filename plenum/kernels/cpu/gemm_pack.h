#pragma once

#include <cstdint>

#include "plenum/kernels/cpu/gemm.h"

// How the factors of a matrix product are laid out for its tiles. For kernels/cpu/gemm.cpp only.

namespace plenum::kernels::cpu {

/// A block of a factor B [k, n]: rows k_begin ... k_begin + depth - 1, columns column_begin ...
struct BlockOfB {
  std::int64_t k_begin = 0;
  std::int64_t depth = 0;
  std::int64_t column_begin = 0;
  std::int64_t columns = 0;
};

/// Writes the block as panels of kTileColumns columns, each with its rows one after the other. The last panel
/// is as wide as the registers its columns take and filled up with zeros.
void pack_b(const GemmOperand& b, const BlockOfB& block, float* packed);

/// A block of a factor A [m, k] that lies transposed.
struct BlockOfA {
  std::int64_t row_begin = 0;
  std::int64_t rows = 0;
  std::int64_t k_begin = 0;
  std::int64_t depth = 0;
};

/// Writes the block as panels of kTileRows rows, each with its columns one after the other. Rows that fill up
/// the last panel are zero.
void pack_transposed_a(const GemmOperand& a, const BlockOfA& block, float* packed);

}  // namespace plenum::kernels::cpu
