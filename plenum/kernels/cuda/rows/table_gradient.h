#pragma once

#include <array>

#include "plenum/kernels/embedding.h"

namespace plenum::kernels::cuda {

inline constexpr std::size_t kNumTables = 3;  ///< words, positions, segments

/// A gradient table and the rows that each of its entries was read for.
struct TableGradient {
  RowGroups groups;
  tensor::TensorView dtable;  ///< Float32; added to
};

/// Adds to each entry of the tables the sum of the rows of dz that read it. Each sum is cut as the list of
/// rows is, into pieces of a fixed size, whatever the entries are: an entry that half of all rows read costs
/// no more than many that one row reads each.
void add_table_gradients(const tensor::Stream& stream, tensor::ConstTensorView dz_TD,
                         const std::array<TableGradient, kNumTables>& tables);

/// The list of rows, sorted by entry, is cut into pieces of this length, a block each. Most groups lie in one
/// piece and are added to their entry at once. A group that goes over a cut leaves a sum in each piece: at
/// the head of a piece if it began before, at its tail if it goes on behind. The piece in which it began adds
/// them up afterwards.
inline constexpr int kTablePieceRows = 64;
inline std::int64_t num_table_pieces(std::int64_t num_rows) {
  return (num_rows + kTablePieceRows - 1) / kTablePieceRows;
}

/// The group that begins in a piece and goes on behind it.
struct OpenTableGroup {
  static constexpr std::int32_t kNone = -1;

  std::int32_t entry;       ///< kNone: no group does
  std::int32_t last_piece;  ///< in which it ends
};

inline std::size_t table_gradient_scratch_bytes(std::int64_t num_rows, std::int64_t width) {
  const auto pieces = static_cast<std::size_t>(num_table_pieces(num_rows)) * kNumTables;
  return pieces * (2 * static_cast<std::size_t>(width) * sizeof(float) + sizeof(OpenTableGroup));
}

}  // namespace plenum::kernels::cuda
