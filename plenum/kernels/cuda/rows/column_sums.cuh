#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/device/vector_io.cuh"
#include "plenum/kernels/cuda/rows/column_sums.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels::cuda {

// Sums over the rows of a matrix that is made or read on the way: [rows, columns] to [columns] in fp32.
// Blocks of rows are summed on their own into scratch and then added in order, so the bytes depend on the
// shape alone.

inline constexpr int kColumnWarps = 8;
/// Enough that a block's sums are few beside what it reads, few enough that blocks are many.
inline constexpr std::int64_t kRowsOfBlock = 128;
/// So that scratch does not grow with the rows: more rows than this many blocks take get larger blocks.
inline constexpr std::int64_t kMaxRowBlocks = 256;
/// Each warp of a block takes every kColumnWarps-th of its rows and eight columns in each lane; then the
/// warps' sums are added in order. `source.load(row, column)` starts the work on eight elements of a row,
/// `source.finish(row, column, loaded)` ends it and returns what to sum. Source::kRowsInFlight rows are
/// loaded at a time: enough to keep memory busy, few enough for the registers.
template <typename Source>
__global__ void __launch_bounds__(kWarpSize* kColumnWarps)
    sum_rows(Source source, std::int64_t num_rows, int num_columns, std::int64_t rows_of_block, float* sums) {
  __shared__ float warp_sums[kColumnWarps][kVectorWidth][kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int column = (static_cast<int>(blockIdx.x) * kWarpSize + lane) * kVectorWidth;
  // From the last rows to the first, as in RowTile.
  const std::int64_t row_block = gridDim.y - 1 - blockIdx.y;
  const std::int64_t begin = row_block * rows_of_block + warp;
  const std::int64_t end = min((row_block + 1) * rows_of_block, num_rows);
  constexpr int kRows = Source::kRowsInFlight;
  FloatVector mine = {};
  if (column < num_columns) {
    for (std::int64_t first = begin; first < end; first += kRows * kColumnWarps) {
      typename Source::Loaded loaded[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const std::int64_t row = first + i * kColumnWarps;
        if (row < end) loaded[i] = source.load(row, column);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const std::int64_t row = first + i * kColumnWarps;
        if (row >= end) break;
        const FloatVector values = source.finish(row, column, loaded[i]);
#pragma unroll
        for (int j = 0; j < kVectorWidth; ++j) mine[j] += values[j];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kVectorWidth; ++j) warp_sums[warp][j][lane] = mine[j];
  __syncthreads();
  static_assert(kColumnWarps == kVectorWidth);
  float sum = 0;
  for (int other = 0; other < kColumnWarps; ++other) sum += warp_sums[other][warp][lane];
  if (column + warp < num_columns) sums[row_block * num_columns + column + warp] = sum;
}

/// The most that add_block_sums adds to at once.
inline constexpr int kMaxTotals = 3;

/// Lets `source` do its work on every element and adds the sums of the columns to `totals`, which share them
/// equally.
template <typename Source>
void add_column_sums_of(const tensor::Stream& stream, const Source& source, std::int64_t num_rows,
                        std::int64_t num_columns, std::span<float* const> totals) {
  if (num_rows == 0 || num_columns == 0) return;
  constexpr std::int64_t kColumnsOfBlock = kWarpSize * kVectorWidth;
  const std::int64_t rows_of_block = std::max(kRowsOfBlock, (num_rows + kMaxRowBlocks - 1) / kMaxRowBlocks);
  const std::int64_t num_blocks = (num_rows + rows_of_block - 1) / rows_of_block;
  const dim3 grid(static_cast<unsigned>((num_columns + kColumnsOfBlock - 1) / kColumnsOfBlock),
                  static_cast<unsigned>(num_blocks));
  check_scratch(stream, static_cast<std::size_t>(num_blocks * num_columns) * sizeof(float));
  auto* const sums = reinterpret_cast<float*>(stream.scratch().data());
  sum_rows<<<grid, kWarpSize * kColumnWarps, 0, stream.cuda().handle()>>>(
      source, num_rows, static_cast<int>(num_columns), rows_of_block, sums);
  tensor::check_cuda(cudaGetLastError(), "add up columns");
  const auto width = static_cast<int>(num_columns / std::ssize(totals));
  add_block_sums(stream, sums, num_blocks, width, totals);
}
/// The same for one total.
template <typename Source>
void add_column_sums_of(const tensor::Stream& stream, const Source& source, std::int64_t num_rows,
                        std::int64_t num_columns, float* total) {
  add_column_sums_of(stream, source, num_rows, num_columns, std::span(&total, 1));
}

}  // namespace plenum::kernels::cuda
