#include "plenum/kernels/cpu/gemm_pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "plenum/kernels/cpu/gemm_tile.h"

namespace plenum::kernels::cpu {
namespace {

constexpr std::int64_t kSquare = kRegisterFloats;

/// a0 b0 a1 b1 ..., of the lower halves (kHalf = 0) or of the upper ones (1).
template <int kHalf, int... kLane>
[[gnu::always_inline]] inline Register interleave(Register a, Register b,
                                                  std::integer_sequence<int, kLane...>) {
  constexpr int kWidth = sizeof...(kLane);
  return __builtin_shufflevector(a, b, (kHalf * kWidth / 2 + kLane / 2 + kLane % 2 * kWidth)...);
}

/// Writes the transpose of a square as wide as a register. Each round interleaves row i with row i + half: it
/// moves the first bit of an element's place (row, column) to the end. After as many rounds as a column has
/// bits, they have changed places with the row's.
[[gnu::always_inline]] inline void transpose_square(const float* from, std::int64_t stride, float* to,
                                                    std::int64_t width) {
  constexpr auto kAll = std::make_integer_sequence<int, static_cast<int>(kSquare)>();
  Register rows[kSquare];
  for (std::int64_t i = 0; i < kSquare; ++i) {
    rows[i] = *reinterpret_cast<const UnalignedRegister*>(from + i * stride);
  }
#pragma GCC unroll 4
  for (std::int64_t bit = 1; bit < kSquare; bit *= 2) {
    Register next[kSquare];
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kSquare / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + kSquare / 2], kAll);
      next[2 * i + 1] = interleave<1>(rows[i], rows[i + kSquare / 2], kAll);
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kSquare; ++i) rows[i] = next[i];
  }
  for (std::int64_t i = 0; i < kSquare; ++i) *reinterpret_cast<Register*>(to + i * width) = rows[i];
}

/// A panel of B on its way into packed form.
struct Panel {
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  std::int64_t width = 0;  ///< columns and the zeros behind them
};

/// Packs a panel whose rows lie as they are needed.
void copy_panel(const float* from, std::int64_t stride, const Panel& panel, float* to) {
  for (std::int64_t k = 0; k < panel.depth; ++k) {
    if (panel.columns == kTileColumns) {
      std::memcpy(to, from + k * stride, kTileColumns * sizeof(float));
    } else {
      std::copy_n(from + k * stride, panel.columns, to);
      std::fill(to + panel.columns, to + panel.width, 0.0F);
    }
    to += panel.width;
  }
}

/// Packs a panel whose columns lie as rows.
void transpose_panel(const float* from, std::int64_t stride, const Panel& panel, float* to) {
  const std::int64_t whole_depth = panel.depth / kSquare * kSquare;
  for (std::int64_t column = 0; column < panel.width; column += kSquare) {
    const float* source = from + column * stride;
    const std::int64_t count = std::min(kSquare, panel.columns - column);
    const std::int64_t squares_end = count == kSquare ? whole_depth : 0;
    for (std::int64_t k = 0; k < squares_end; k += kSquare) {
      transpose_square(source + k, stride, to + k * panel.width + column, panel.width);
    }
    for (std::int64_t k = squares_end; k < panel.depth; ++k) {
      float* target = to + k * panel.width + column;
      for (std::int64_t j = 0; j < kSquare; ++j) target[j] = j < count ? source[j * stride + k] : 0.0F;
    }
  }
}

}  // namespace

void pack_b(const GemmOperand& b, const BlockOfB& block, float* packed) {
  for (std::int64_t done = 0; done < block.columns; done += kTileColumns) {
    const std::int64_t columns = std::min(kTileColumns, block.columns - done);
    const Panel panel = {.depth = block.depth,
                         .columns = columns,
                         .width = (columns + kRegisterFloats - 1) / kRegisterFloats * kRegisterFloats};
    const std::int64_t column = block.column_begin + done;
    if (b.is_transposed) {
      transpose_panel(b.data + column * b.stride + block.k_begin, b.stride, panel, packed);
    } else {
      copy_panel(b.data + block.k_begin * b.stride + column, b.stride, panel, packed);
    }
    packed += block.depth * kTileColumns;
  }
}

void pack_transposed_a(const GemmOperand& a, const BlockOfA& block, float* packed) {
  // Rows that lie a multiple of a page apart compete for the same few lines of the first-level cache, so only
  // that many are read at a time.
  constexpr std::int64_t kSourceRows = 8;
  for (std::int64_t k_begin = 0; k_begin < block.depth; k_begin += kSourceRows) {
    const std::int64_t k_end = std::min(block.depth, k_begin + kSourceRows);
    for (std::int64_t done = 0; done < block.rows; done += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, block.rows - done);
      const float* from = a.data + block.k_begin * a.stride + block.row_begin + done;
      float* to = packed + done * block.depth;
      for (std::int64_t k = k_begin; k < k_end; ++k) {
        if (rows == kTileRows) {
          std::memcpy(to + k * kTileRows, from + k * a.stride, kTileRows * sizeof(float));
        } else {
          std::copy_n(from + k * a.stride, rows, to + k * kTileRows);
          std::fill(to + k * kTileRows + rows, to + (k + 1) * kTileRows, 0.0F);
        }
      }
    }
  }
}

}  // namespace plenum::kernels::cpu
