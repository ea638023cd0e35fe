#include <numbers>

#include "plenum/kernels/cuda/attention_sm80.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float dot(std::uint32_t a, std::uint32_t b) {
  const float2 x = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(a));
  const float2 y = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(b));
  return x.x * y.x + x.y * y.y;
}

// A block has one head of several neighbouring rows; kWidth / 8 threads have a row of it.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    attention_row_statistics_kernel(const AttentionRowStatisticsArguments args) {
  constexpr int kThreadsPerRow = kWidth / 8;
  constexpr int kRows = kThreads / kThreadsPerRow;
  const int head = static_cast<int>(blockIdx.x) % args.num_heads;
  const int row =
      static_cast<int>(blockIdx.x) / args.num_heads * kRows + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int part = static_cast<int>(threadIdx.x) % kThreadsPerRow;
  const bool is_real = row < args.num_rows;
  float sum = 0;
  if (is_real) {
    const std::int64_t at = (std::int64_t{row} * args.num_heads + head) * kWidth + part * 8;
    const uint4 o = *reinterpret_cast<const uint4*>(args.context_THK + at);
    const uint4 d = *reinterpret_cast<const uint4*>(args.dcontext_THK + at);
    sum = dot(o.x, d.x) + dot(o.y, d.y) + dot(o.z, d.z) + dot(o.w, d.w);
  }
#pragma unroll
  for (int s = kThreadsPerRow / 2; s > 0; s /= 2) sum += __shfl_xor_sync(~0U, sum, s);
  if (is_real && part == 0) {
    const std::int64_t at = std::int64_t{head} * args.num_rows + row;
    args.statistics_HT[at] = {args.lse_HT[at] * std::numbers::log2e_v<float>, sum};
  }
}

template <int kWidth>
void launch(cudaStream_t stream, const AttentionRowStatisticsArguments& args) {
  constexpr int kRows = kThreads * 8 / kWidth;
  const int num_blocks = (args.num_rows + kRows - 1) / kRows * args.num_heads;
  if (num_blocks > 0) attention_row_statistics_kernel<kWidth><<<num_blocks, kThreads, 0, stream>>>(args);
}

}  // namespace

void attention_row_statistics(cudaStream_t stream, const AttentionRowStatisticsArguments& args) {
  if (args.head_width == 64) {
    launch<64>(stream, args);
  } else {
    launch<128>(stream, args);
  }
}

}  // namespace plenum::kernels::cuda
