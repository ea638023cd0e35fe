#include "plenum/kernels/cpu/gemm_pack.h"

#include <algorithm>

#include "plenum/kernels/cpu/gemm_tile.h"

namespace plenum::kernels::cpu {
namespace {

/// Copies `depth` rows of a panel that lie as they are needed.
void copy_panel(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                std::int64_t width, float* to) {
  for (std::int64_t k = 0; k < depth; ++k) {
    std::copy_n(from + k * stride, columns, to + k * width);
    std::fill(to + k * width + columns, to + (k + 1) * width, 0.0F);
  }
}

/// Writes the panel whose columns lie as rows. A few of them at a time, so that each cache line of the source
/// is read once.
void transpose_panel(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                     std::int64_t width, float* to) {
  constexpr std::int64_t kLine = 16;
  for (std::int64_t k_begin = 0; k_begin < depth; k_begin += kLine) {
    const std::int64_t k_end = std::min(depth, k_begin + kLine);
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t k = k_begin; k < k_end; ++k) to[k * width + column] = from[column * stride + k];
    }
    for (std::int64_t k = k_begin; k < k_end; ++k)
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
      copy_panel(b.data + block.k_begin * b.stride + column, b.stride, block.depth, columns, width, packed);
    }
    packed += block.depth * kTileColumns;
  }
}

void pack_transposed_a(const GemmOperand& a, const BlockOfA& block, float* packed) {
  for (std::int64_t done = 0; done < block.rows; done += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, block.rows - done);
    copy_panel(a.data + block.k_begin * a.stride + block.row_begin + done, a.stride, block.depth, rows,
               kTileRows, packed);
    packed += block.depth * kTileRows;
  }
}

}  // namespace plenum::kernels::cpu
