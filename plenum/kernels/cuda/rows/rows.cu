#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/device/vector_io.cuh"
#include "plenum/kernels/cuda/rows/rows.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kRowsOfBlock = 4;  // a warp for each

__device__ std::int64_t own_row() {
  return std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kWarpSize;
}

/// Calls `function` with the columns of this thread's vectors.
template <typename Function>
__device__ void for_own_columns(int width, Function function) {
  constexpr int kStep = kWarpSize * kVectorWidth;
#pragma unroll 4
  for (int column = static_cast<int>(threadIdx.x) % kWarpSize * kVectorWidth; column < width; column += kStep)
    function(column);
}

template <bool kIsAligned>
__global__ void gather(const __nv_bfloat16* __restrict__ x_TD, std::int64_t first_index,
                       std::int64_t num_sources, const std::int32_t* __restrict__ index_M,
                       __nv_bfloat16* __restrict__ y_MD, std::int64_t num_rows, int width) {
  const std::int64_t row = own_row();
  if (row >= num_rows) return;
  const std::int64_t from = index_M[row] - first_index;
  const bool is_here = from >= 0 && from < num_sources;
  for_own_columns(width, [&](int column) {
    const PackedVector x =
        is_here ? load_packed<kIsAligned>(x_TD + from * width, column, width) : PackedVector{};
    store_packed<kIsAligned>(y_MD + row * width, column, width, x);
  });
}

template <bool kIsAligned>
__global__ void scatter_add(const __nv_bfloat16* __restrict__ dy_MD, const std::int32_t* __restrict__ index_M,
                            __nv_bfloat16* __restrict__ dx_TD, std::int64_t num_rows, int width) {
  const std::int64_t row = own_row();
  if (row >= num_rows || index_M[row] < 0) return;
  __nv_bfloat16* const dx_D = dx_TD + std::int64_t{index_M[row]} * width;
  for_own_columns(width, [&](int column) {
    FloatVector dx = load_vector<kIsAligned>(dx_D, column, width);
    const FloatVector dy = load_vector<kIsAligned>(dy_MD + row * width, column, width);
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) dx[i] += dy[i];
    store_vector<kIsAligned>(dx_D, column, width, dx);
  });
}

unsigned num_blocks(std::int64_t num_rows) {
  return static_cast<unsigned>((num_rows + kRowsOfBlock - 1) / kRowsOfBlock);
}

}  // namespace

void gather_rows_forward(const tensor::Stream& stream, const GatherRowsForward& args) {
  const std::int64_t num_rows = args.y_MD.size(0);
  const std::int64_t width = args.y_MD.size(1);
  if (num_rows == 0 || width == 0) return;
  const auto kernel = are_rows_aligned(width, args.x_TD, args.y_MD) ? gather<true> : gather<false>;
  kernel<<<num_blocks(num_rows), kRowsOfBlock * kWarpSize, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.x_TD), args.slice.first, args.x_TD.size(0), args.index_M.data<std::int32_t>(),
      bfloat16_data(args.y_MD), num_rows, static_cast<int>(width));
  tensor::check_cuda(cudaGetLastError(), "start the gathering of rows");
}

void gather_rows_backward(const tensor::Stream& stream, const GatherRowsBackward& args) {
  const std::int64_t num_rows = args.dy_MD.size(0);
  const std::int64_t width = args.dy_MD.size(1);
  if (num_rows == 0 || width == 0) return;
  const auto kernel =
      are_rows_aligned(width, args.dx_TD, args.dy_MD) ? scatter_add<true> : scatter_add<false>;
  kernel<<<num_blocks(num_rows), kRowsOfBlock * kWarpSize, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.dy_MD), args.index_M.data<std::int32_t>(), bfloat16_data(args.dx_TD), num_rows,
      static_cast<int>(width));
  tensor::check_cuda(cudaGetLastError(), "start the gradient of gathered rows");
}

}  // namespace plenum::kernels::cuda
