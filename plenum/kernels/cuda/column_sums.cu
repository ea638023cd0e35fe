#include <algorithm>
#include <bit>

#include <cuda_bf16.h>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/column_sums.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;
/// A block's rows: enough that its sums are few beside what it reads, few enough for a block on every SM.
constexpr std::int64_t kRowsPerBlock = 128;
/// Scratch is of fixed size: more rows than this many blocks take get larger blocks.
constexpr std::int64_t kMaxBlocks = 256;

/// kColumns neighbours of a row, loaded at once.
template <int kColumns>
struct alignas(kColumns * sizeof(__nv_bfloat16)) Piece {
  __nv_bfloat16 values[kColumns];
};

/// Block (i, j) sums rows [i, i + 1) * rows_per_block of kWarp * kColumns columns. Each warp takes every
/// kWarps-th of these rows; the warps' sums are added in order.
template <int kColumns>
__global__ void __launch_bounds__(kWarp* kWarps)
    sum_rows_kernel(const __nv_bfloat16* x, std::int64_t num_rows, std::int64_t num_columns,
                    std::int64_t rows_per_block, float* sums) {
  __shared__ float warp_sums[kWarps][kColumns][kWarp];
  const int lane = threadIdx.x;
  const int warp = threadIdx.y;
  const std::int64_t column = (std::int64_t{blockIdx.y} * kWarp + lane) * kColumns;
  const std::int64_t begin = std::int64_t{blockIdx.x} * rows_per_block;
  const std::int64_t end = min(begin + rows_per_block, num_rows);
  float mine[kColumns] = {};
  if (column < num_columns) {
#pragma unroll 8
    for (std::int64_t row = begin + warp; row < end; row += kWarps) {
      const auto piece = *reinterpret_cast<const Piece<kColumns>*>(x + row * num_columns + column);
#pragma unroll
      for (int i = 0; i < kColumns; ++i) mine[i] += __bfloat162float(piece.values[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kColumns; ++i) warp_sums[warp][i][lane] = mine[i];
  __syncthreads();
  for (int i = warp; i < kColumns && column < num_columns; i += kWarps) {
    float sum = 0;
    for (int other = 0; other < kWarps; ++other) sum += warp_sums[other][i][lane];
    sums[std::int64_t{blockIdx.x} * num_columns + column + i] = sum;
  }
}

/// Adds the blocks' sums to `total`, each warp those of every kWarps-th block, then the warps' in order.
__global__ void __launch_bounds__(kWarp* kWarps)
    add_sums_kernel(const float* sums, std::int64_t num_blocks, std::int64_t num_columns, float* total) {
  __shared__ float warp_sums[kWarps][kWarp];
  const int lane = threadIdx.x;
  const int warp = threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
  float mine = 0;
  if (column < num_columns) {
#pragma unroll 4
    for (std::int64_t block = warp; block < num_blocks; block += kWarps) {
      mine += sums[block * num_columns + column];
    }
  }
  warp_sums[warp][lane] = mine;
  __syncthreads();
  if (warp != 0 || column >= num_columns) return;
  float sum = 0;
  for (int other = 0; other < kWarps; ++other) sum += warp_sums[other][lane];
  total[column] += sum;
}

unsigned cuts(std::int64_t size, std::int64_t piece) {
  return static_cast<unsigned>((size + piece - 1) / piece);
}

}  // namespace

void add_column_sums(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* total) {
  constexpr int kWide = 8;
  const std::int64_t num_rows = x.size(0);
  const std::int64_t num_columns = x.size(1);
  if (num_rows == 0 || num_columns == 0) return;
  const std::int64_t rows_per_block = std::max(kRowsPerBlock, (num_rows + kMaxBlocks - 1) / kMaxBlocks);
  const unsigned num_blocks = cuts(num_rows, rows_per_block);
  check_scratch(stream, num_blocks * static_cast<std::size_t>(num_columns) * sizeof(float));
  auto* const sums = reinterpret_cast<float*>(stream.scratch().data());
  const auto* const data = static_cast<const __nv_bfloat16*>(x.raw());
  const bool is_wide =
      num_columns % kWide == 0 && std::bit_cast<std::uintptr_t>(data) % sizeof(Piece<kWide>) == 0;
  const dim3 threads(kWarp, kWarps);
  cudaStream_t const queue = stream.cuda().handle();
  if (is_wide) {
    sum_rows_kernel<kWide><<<dim3(num_blocks, cuts(num_columns, kWarp * kWide)), threads, 0, queue>>>(
        data, num_rows, num_columns, rows_per_block, sums);
  } else {
    sum_rows_kernel<1><<<dim3(num_blocks, cuts(num_columns, kWarp)), threads, 0, queue>>>(
        data, num_rows, num_columns, rows_per_block, sums);
  }
  add_sums_kernel<<<cuts(num_columns, kWarp), threads, 0, queue>>>(sums, num_blocks, num_columns, total);
  tensor::check_cuda(cudaGetLastError(), "add up columns");
}

}  // namespace plenum::kernels::cuda
