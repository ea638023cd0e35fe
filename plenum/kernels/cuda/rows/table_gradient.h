#pragma once

#include <array>

#include "plenum/kernels/embedding.h"
#include "plenum/workspace/rows.h"

namespace plenum::kernels::cuda {

using workspace::kNumTables;
using workspace::kTablePieceRows;
using workspace::num_table_pieces;

/// A gradient table and the rows that each of its entries was read for.
struct TableGradient {
  RowGroups groups;
  tensor::TensorView dtable;     ///< Float32; added to
  std::int64_t first_entry = 0;  ///< that is row 0 of dtable; entries outside of it are passed over
};

/// Adds to each entry of the tables the sum of the rows of dz that read it. Each sum is cut as the list of
/// rows is, into pieces of a fixed size, whatever the entries are: an entry that half of all rows read costs
/// no more than many that one row reads each.
void add_table_gradients(const tensor::Stream& stream, tensor::ConstTensorView dz_TD,
                         const std::array<TableGradient, kNumTables>& tables);

/// The group that begins in a piece and goes on behind it.
struct OpenTableGroup {
  static constexpr std::int32_t kNone = -1;

  std::int32_t entry;       ///< kNone: no group does
  std::int32_t last_piece;  ///< in which it ends
};
static_assert(sizeof(OpenTableGroup) == workspace::kOpenTableGroupBytes);

}  // namespace plenum::kernels::cuda
