#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/row_block.cuh"
#include "plenum/kernels/cuda/rows/pool_rows.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

/// The first row of a group not below `group`: rows of none, -1, are behind all others.
__device__ int first_row_of(const std::int32_t* __restrict__ group_R, int num_rows, unsigned group) {
  int begin = 0;
  for (int end = num_rows; begin < end;) {
    const int middle = (begin + end) / 2;
    if (static_cast<unsigned>(group_R[middle]) < group) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// A block for each group; a thread for eight columns.
template <bool kIsAligned, int kThreads>
__global__ void __launch_bounds__(kThreads)
    pool(const __nv_bfloat16* __restrict__ x_RD, const std::int32_t* __restrict__ group_R, int num_rows,
         int width, bool has_unit_length, float* __restrict__ y_SD) {
  const unsigned group = blockIdx.x;
  const int begin = first_row_of(group_R, num_rows, group);
  const int end = first_row_of(group_R, num_rows, group + 1);
  const int column = static_cast<int>(threadIdx.x) * kVectorWidth;
  FloatVector y{};
#pragma unroll 4
  for (int row = begin; row < end; ++row) {
    y = sum_of(y, load_vector<kIsAligned>(x_RD + std::int64_t{row} * width, column, width));
  }
  const float share = 1.0F / static_cast<float>(end - begin);
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i) {
    y[i] *= share;
    squares += y[i] * y[i];  // zero beyond the width
  }
  if (has_unit_length) {
    __shared__ BlockReduction shared;
    const float factor = 1.0F / fmaxf(sqrtf(block_sum(squares, shared)), kLeastPooledLength);
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) y[i] *= factor;
  }
  store_vector<kIsAligned>(y_SD + std::int64_t{group} * width, column, width, y);
}

}  // namespace

void pool_rows(const tensor::Stream& stream, const PoolRows& args) {
  const std::int64_t num_rows = args.x_RD.size(0);
  const std::int64_t width = args.x_RD.size(1);
  const std::int64_t num_groups = args.y_SD.size(0);
  if (num_groups == 0 || width == 0) return;
  base::check(num_rows <= kMaxRows, "the GPU takes at most {} rows at a time: {}", kMaxRows, num_rows);
  const int threads = threads_of_row(width);
  for_row_variant(
      are_rows_aligned(width, args.x_RD, args.y_SD), threads, [&](auto is_aligned, auto most_threads) {
        pool<is_aligned(), most_threads()>
            <<<static_cast<unsigned>(num_groups), threads, 0, stream.cuda().handle()>>>(
                bfloat16_data(args.x_RD), args.group_R.data<std::int32_t>(), static_cast<int>(num_rows),
                static_cast<int>(width), args.unit_length == UnitLength::Yes, args.y_SD.data<float>());
      });
  tensor::check_cuda(cudaGetLastError(), "pool rows");
}

}  // namespace plenum::kernels::cuda
