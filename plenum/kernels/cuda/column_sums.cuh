#pragma once

#include <algorithm>
#include <cstdint>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/reduce.cuh"
#include "plenum/kernels/cuda/vector_io.cuh"
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
/// Rows that a warp has in flight: loads of several are needed to keep memory busy.
inline constexpr int kRowsInFlight = 4;

/// Each warp of a block takes every kColumnWarps-th of its rows and eight columns in each lane; then the
/// warps' sums are added in order. `source.load(row, column)` starts the work on eight elements of a row,
/// `source.finish(row, column, loaded)` ends it and returns what to sum.
template <typename Source>
__global__ void __launch_bounds__(kWarpSize* kColumnWarps)
    sum_rows(Source source, std::int64_t num_rows, int num_columns, std::int64_t rows_of_block, float* sums) {
  __shared__ float warp_sums[kColumnWarps][kVectorWidth][kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int column = (static_cast<int>(blockIdx.y) * kWarpSize + lane) * kVectorWidth;
  const std::int64_t begin = std::int64_t{blockIdx.x} * rows_of_block + warp;
  const std::int64_t end = min(std::int64_t{blockIdx.x + 1} * rows_of_block, num_rows);
  FloatVector mine = {};
  if (column < num_columns) {
    for (std::int64_t first = begin; first < end; first += kRowsInFlight * kColumnWarps) {
      typename Source::Loaded loaded[kRowsInFlight];
#pragma unroll
      for (int i = 0; i < kRowsInFlight; ++i) {
        const std::int64_t row = first + i * kColumnWarps;
        if (row < end) loaded[i] = source.load(row, column);
      }
#pragma unroll
      for (int i = 0; i < kRowsInFlight; ++i) {
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
  if (column + warp < num_columns) sums[std::int64_t{blockIdx.x} * num_columns + column + warp] = sum;
}

/// Adds the blocks' sums to `total`.
void add_block_sums(const tensor::Stream& stream, const float* sums, std::int64_t num_blocks, int num_columns,
                    float* total);

/// Lets `source` do its work on every element, and adds the sums of the columns to `total` unless that is
/// null.
template <typename Source>
void add_column_sums_of(const tensor::Stream& stream, const Source& source, std::int64_t num_rows,
                        std::int64_t num_columns, float* total) {
  if (num_rows == 0 || num_columns == 0) return;
  constexpr std::int64_t kColumnsOfBlock = kWarpSize * kVectorWidth;
  const std::int64_t rows_of_block = std::max(kRowsOfBlock, (num_rows + kMaxRowBlocks - 1) / kMaxRowBlocks);
  const std::int64_t num_blocks = (num_rows + rows_of_block - 1) / rows_of_block;
  const dim3 grid(static_cast<unsigned>(num_blocks),
                  static_cast<unsigned>((num_columns + kColumnsOfBlock - 1) / kColumnsOfBlock));
  check_scratch(stream, static_cast<std::size_t>(num_blocks * num_columns) * sizeof(float));
  auto* const sums = reinterpret_cast<float*>(stream.scratch().data());
  sum_rows<<<grid, kWarpSize * kColumnWarps, 0, stream.cuda().handle()>>>(
      source, num_rows, static_cast<int>(num_columns), rows_of_block, sums);
  tensor::check_cuda(cudaGetLastError(), "add up columns");
  if (total != nullptr) add_block_sums(stream, sums, num_blocks, static_cast<int>(num_columns), total);
}

}  // namespace plenum::kernels::cuda
