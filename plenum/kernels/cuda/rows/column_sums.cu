#include <vector>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/rows/column_sums.cuh"
#include "plenum/kernels/cuda/rows/column_sums.h"

namespace plenum::kernels::cuda {
namespace {

/// Columns of a matrix: `width` of them, and more behind some that are skipped.
template <bool kIsAligned>
struct Rows {
  static constexpr int kRowsInFlight = 4;
  using Loaded = PackedVector;
  const __nv_bfloat16* x;
  std::int64_t stride;
  int width;
  int skipped = 0;  ///< only where rows are aligned: no vector lies on both sides

  __device__ Loaded load(std::int64_t row, int column) const {
    if constexpr (kIsAligned) {
      const int from = column < width ? column : column + skipped;
      return load_packed<true>(x + row * stride, from, from + kVectorWidth);
    } else {
      return load_packed<false>(x + row * stride, column, width);
    }
  }
  __device__ FloatVector finish(std::int64_t, int, const Loaded& loaded) const { return unpack(loaded); }
};

/// Where sums are added to.
struct Totals {
  float* at[kMaxTotals];
};

// A block has 32 columns; each of its warps takes the sums of every 32nd block of rows.
__global__ void __launch_bounds__(kWarpSize* kMaxWarps)
    add_sums(const float* sums, int num_blocks, int num_columns, int width, const Totals totals) {
  __shared__ float of_warp[kMaxWarps][kWarpSize + 1];
  const int lane = static_cast<int>(threadIdx.x % kWarpSize);
  const int warp = static_cast<int>(threadIdx.x / kWarpSize);
  const int first_column = static_cast<int>(blockIdx.x) * kWarpSize;
  float mine = 0;
  if (first_column + lane < num_columns) {
#pragma unroll 16
    for (int block = warp; block < num_blocks; block += kMaxWarps)
      mine += sums[std::int64_t{block} * num_columns + first_column + lane];
  }
  of_warp[warp][lane] = mine;
  __syncthreads();
  // Now each warp has one column.
  const float sum = warp_sum(of_warp[lane][warp]);
  const int column = first_column + warp;
  if (lane == 0 && column < num_columns) totals.at[column / width][column % width] += sum;
}

}  // namespace

void add_block_sums(const tensor::Stream& stream, const float* sums, std::int64_t num_blocks, int width,
                    std::span<float* const> totals) {
  base::check(totals.size() <= kMaxTotals, "sums are added to {} totals at most: {}", kMaxTotals,
              totals.size());
  Totals given{};
  std::ranges::copy(totals, given.at);
  const int num_columns = width * static_cast<int>(totals.size());
  const auto num_stripes = static_cast<unsigned>((num_columns + kWarpSize - 1) / kWarpSize);
  add_sums<<<num_stripes, kWarpSize * kMaxWarps, 0, stream.cuda().handle()>>>(
      sums, static_cast<int>(num_blocks), num_columns, width, given);
  tensor::check_cuda(cudaGetLastError(), "add up columns");
}

void add_sum_of_rows(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* total) {
  const auto width = static_cast<int>(x.size(1));
  const auto add = [&](const auto& rows) { add_column_sums_of(stream, rows, x.size(0), width, total); };
  if (are_rows_aligned(width, x)) return add(Rows<true>{bfloat16_data(x), width, width});
  add(Rows<false>{bfloat16_data(x), width, width});
}

void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args) {
  const tensor::ConstTensorView& x = args.x_T3D;
  const std::int64_t stride = x.size(1);
  const auto width = static_cast<int>(stride / 3);
  std::vector<int> parts;
  std::vector<float*> totals;
  for (int part = 0; part < 3; ++part) {
    const tensor::TensorView& sum_D = args.sum_3_D[static_cast<std::size_t>(part)];
    if (!sum_D) continue;
    parts.push_back(part);
    totals.push_back(sum_D.data<float>());
  }
  if (parts.empty()) return;
  if (are_rows_aligned(width, x)) {
    const int skipped = parts.size() > 1 ? (parts[1] - parts[0] - 1) * width : 0;
    return add_column_sums_of(stream, Rows<true>{bfloat16_data(x) + parts[0] * width, stride, width, skipped},
                              x.size(0), std::ssize(parts) * width, totals);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    add_column_sums_of(stream, Rows<false>{bfloat16_data(x) + parts[i] * width, stride, width}, x.size(0),
                       width, totals[i]);
  }
}

}  // namespace plenum::kernels::cuda
