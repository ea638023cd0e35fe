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

std::size_t table_gradient_scratch_bytes(std::int64_t num_rows, std::int64_t width);

}  // namespace plenum::kernels::cuda
