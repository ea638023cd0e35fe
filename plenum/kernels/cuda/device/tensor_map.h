#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace plenum::kernels::cuda {

/// Of the boxes of make_tensor_map.
inline constexpr int kBoxRows = 64;

/// Describes a matrix of bf16 with contiguous rows for the copy engine, which then copies boxes of 64 columns
/// and up to 64 rows to shared memory in the layout of wgmma.cuh, with zeros for the rows that are left out
/// (see copy_rows). The base is 16-byte aligned, num_columns a multiple of 8.
///
/// The copy engine gives zeros where a coordinate is out of bounds, and bounds are those of the matrix. To
/// let a box end where a sequence does, rows have two coordinates, (i, r) for row i + r - 64 with i < 64: a
/// box whose first row is `row` begins at (64 - n, row + n) and leaves the bounds of i behind its first n
/// rows.
cudaError_t make_tensor_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                            CUtensorMap& map);

/// The same for boxes of box_rows (at most 256) and 64 columns, in either direction. Rows and columns beyond
/// the matrix are read as zeros and not written (see copy_box and store_box).
cudaError_t make_box_map(const __nv_bfloat16* matrix, std::int64_t num_rows, std::int64_t num_columns,
                         int box_rows, CUtensorMap& map);

}  // namespace plenum::kernels::cuda
