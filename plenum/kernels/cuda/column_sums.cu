#include "plenum/kernels/cuda/column_sums.cuh"
#include "plenum/kernels/cuda/column_sums.h"

namespace plenum::kernels::cuda {
namespace {

/// The matrix itself.
template <bool kIsAligned>
struct Rows {
  using Loaded = PackedVector;
  const __nv_bfloat16* x;
  int num_columns;

  __device__ Loaded load(std::int64_t row, int column) const {
    return load_packed<kIsAligned>(x + row * num_columns, column, num_columns);
  }
  __device__ FloatVector finish(std::int64_t, int, const Loaded& loaded) const { return unpack(loaded); }
};

/// Adds the sums of every kColumnWarps-th block in each warp, then the warps' in order.
__global__ void __launch_bounds__(kWarpSize* kColumnWarps)
    add_block_sums_kernel(const float* sums, std::int64_t num_blocks, int num_columns, float* total) {
  __shared__ float warp_sums[kColumnWarps][kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int column = static_cast<int>(blockIdx.x) * kWarpSize + lane;
  float mine = 0;
  if (column < num_columns) {
#pragma unroll 8
    for (std::int64_t block = warp; block < num_blocks; block += kColumnWarps) {
      mine += sums[block * num_columns + column];
    }
  }
  warp_sums[warp][lane] = mine;
  __syncthreads();
  if (warp != 0 || column >= num_columns) return;
  float sum = 0;
  for (int other = 0; other < kColumnWarps; ++other) sum += warp_sums[other][lane];
  total[column] += sum;
}

}  // namespace

void add_block_sums(const tensor::Stream& stream, const float* sums, std::int64_t num_blocks, int num_columns,
                    float* total) {
  const auto grid = static_cast<unsigned>((num_columns + kWarpSize - 1) / kWarpSize);
  add_block_sums_kernel<<<grid, kWarpSize * kColumnWarps, 0, stream.cuda().handle()>>>(sums, num_blocks,
                                                                                       num_columns, total);
  tensor::check_cuda(cudaGetLastError(), "add up columns");
}

void add_column_sums(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* total) {
  const auto width = static_cast<int>(x.size(1));
  const auto add = [&](const auto& rows) { add_column_sums_of(stream, rows, x.size(0), width, total); };
  if (are_rows_aligned(width, x)) return add(Rows<true>{bfloat16_data(x), width});
  add(Rows<false>{bfloat16_data(x), width});
}

}  // namespace plenum::kernels::cuda
