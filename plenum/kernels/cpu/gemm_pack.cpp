#include "plenum/kernels/cpu/gemm_pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "plenum/kernels/cpu/gemm_tile.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

/// Copies `depth` rows of a panel that lie as they are needed. Most have all kColumns columns, a number that
/// the compiler knows: a few moves for each row instead of a call.
template <std::int64_t kColumns>
void copy_panel(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                std::int64_t width, float* to) {
  if (columns == kColumns) {
    for (std::int64_t k = 0; k < depth; ++k) {
      std::memcpy(to + k * kColumns, from + k * stride, static_cast<std::size_t>(kColumns) * sizeof(float));
    }
    return;
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    std::copy_n(from + k * stride, columns, to + k * width);
    std::fill(to + k * width + columns, to + (k + 1) * width, 0.0F);
  }
}

constexpr auto kSquare = static_cast<std::int64_t>(kLanes);

/// Swaps the upper right and the lower left quarters of all squares of 2 kHalf rows and columns.
template <std::size_t kHalf, std::size_t... kColumn>
[[gnu::always_inline]] inline void swap_quarters(std::array<Vec, kLanes>& rows,
                                                 std::index_sequence<kColumn...>) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((i & kHalf) != 0) continue;
    const Vec upper = rows[i];
    const Vec lower = rows[i + kHalf];
    rows[i] = __builtin_shufflevector(upper, lower,
                                      ((kColumn & kHalf) == 0 ? kColumn : kColumn - kHalf + kLanes)...);
    rows[i + kHalf] = __builtin_shufflevector(
        upper, lower, ((kColumn & kHalf) == 0 ? kColumn + kHalf : kColumn + kLanes)...);
  }
}

/// Transposes a square of 16 rows and columns.
void transpose_square(const float* from, std::int64_t stride, float* to, std::int64_t width) {
  std::array<Vec, kLanes> rows;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kLanes; ++i) rows[i] = load(from + static_cast<std::int64_t>(i) * stride);
  constexpr auto kColumns = std::make_index_sequence<kLanes>();
  swap_quarters<8>(rows, kColumns);
  swap_quarters<4>(rows, kColumns);
  swap_quarters<2>(rows, kColumns);
  swap_quarters<1>(rows, kColumns);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kLanes; ++i) store(to + static_cast<std::int64_t>(i) * width, rows[i]);
}

/// Writes the panel whose columns lie as rows.
void transpose_panel(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                     std::int64_t width, float* to) {
  const std::int64_t square_columns = columns / kSquare * kSquare;
  const std::int64_t square_depth = depth / kSquare * kSquare;
  for (std::int64_t column = 0; column < square_columns; column += kSquare) {
    for (std::int64_t k = 0; k < square_depth; k += kSquare) {
      transpose_square(from + column * stride + k, stride, to + k * width + column, width);
    }
    for (std::int64_t k = square_depth; k < depth; ++k) {
      for (std::int64_t i = column; i < column + kSquare; ++i) to[k * width + i] = from[i * stride + k];
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t i = square_columns; i < columns; ++i) to[k * width + i] = from[i * stride + k];
    std::fill(to + k * width + columns, to + (k + 1) * width, 0.0F);
  }
}

}  // namespace

void pack_b(const GemmOperand& b, const BlockOfB& block, float* packed) {
  for (std::int64_t done = 0; done < block.columns; done += kTileColumns) {
    const std::int64_t columns = std::min(kTileColumns, block.columns - done);
    const std::int64_t width = (columns + kRegisterFloats - 1) / kRegisterFloats * kRegisterFloats;
    const std::int64_t column = block.column_begin + done;
    if (b.is_transposed) {
      transpose_panel(b.data + column * b.stride + block.k_begin, b.stride, block.depth, columns, width,
                      packed);
    } else {
      copy_panel<kTileColumns>(b.data + block.k_begin * b.stride + column, b.stride, block.depth, columns,
                               width, packed);
    }
    packed += block.depth * kTileColumns;
  }
}

void pack_transposed_a(const GemmOperand& a, const BlockOfA& block, float* packed) {
  for (std::int64_t done = 0; done < block.rows; done += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, block.rows - done);
    copy_panel<kTileRows>(a.data + block.k_begin * a.stride + block.row_begin + done, a.stride, block.depth,
                          rows, kTileRows, packed);
    packed += block.depth * kTileRows;
  }
}

}  // namespace plenum::kernels::cpu
