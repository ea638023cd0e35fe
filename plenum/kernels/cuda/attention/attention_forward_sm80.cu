#include <cmath>

#include "plenum/kernels/cuda/attention/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention/attention_mma.cuh"
#include "plenum/kernels/cuda/attention/attention_sm80.h"
#include "plenum/kernels/cuda/attention/warp_matrix.cuh"

namespace plenum::kernels::cuda {
namespace {

// Queries own the sums, keys and values go by.
constexpr int kStep = 64;
constexpr int kStages = 2;

template <int kWidth>
constexpr int kBlocksPerMultiprocessor = kWidth == 64 ? 2 : 1;

template <int kWidth>
struct alignas(256) Shared {
  std::byte q[OwnedCut<kWidth>::kRows * kWidth * 2];  // at last the context
  std::byte k[kStages][kStep * kWidth * 2];
  std::byte v[kStages][kStep * kWidth * 2];
};

// The larger, or the sum, over the four threads that share a row.
__device__ inline float max_of_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}
__device__ inline float sum_of_quad(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}

// The queries of a warp, as operands.
template <int kWidth>
struct Queries {
  std::uint32_t of[OwnedCut<kWidth>::kGroups][kWidth / 16][4];

  __device__ void load(std::uint32_t rows) {
    using Rows = SharedRows<kWidth>;
    const std::uint32_t own = rows + Rows::along_rows(static_cast<int>(threadIdx.x) % 32);
#pragma unroll
    for (int i = 0; i < OwnedCut<kWidth>::kGroups; ++i) {
#pragma unroll
      for (int s = 0; s < kWidth / 16; ++s)
        load_matrices(of[i][s], (own ^ (s << 5)) + i * 16 * Rows::kRowBytes);
    }
  }
};

// scores[queries, keys] = Q K^T
template <int kWidth, int kGroups>
__device__ inline void score(Sums<kGroups, kStep>& scores, const Queries<kWidth>& q, std::uint32_t k) {
#pragma unroll
  for (int s = 0; s < kWidth / 16; ++s) {
#pragma unroll
    for (int n = 0; n < kStep / 16; ++n) {
      std::uint32_t right[4];
      load_matrices(right, (k ^ (s << 5)) + n * 16 * SharedRows<kWidth>::kRowBytes);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        multiply_add(scores.of[i][2 * n], q.of[i][s], right[0], right[1]);
        multiply_add(scores.of[i][2 * n + 1], q.of[i][s], right[2], right[3]);
      }
    }
  }
}

// The softmax of a thread's rows as far as keys have gone by. `sum` is over the thread's own columns.
template <int kWidth>
struct RunningSoftmax {
  static constexpr int kGroups = OwnedCut<kWidth>::kGroups;
  float max[kGroups][2];
  float sum[kGroups][2];

  __device__ RunningSoftmax() {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      max[i][0] = max[i][1] = -INFINITY;
      sum[i][0] = sum[i][1] = 0;
    }
  }

  // Replaces scores by exponentials relative to the largest so far, and rescales what was summed before.
  __device__ void exponentiate(Sums<kGroups, kStep>& scores, Sums<kGroups, kWidth>& context) {
    constexpr float kScale = kExponentScale<kWidth>;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float largest = max[i][half];
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n)
          largest = fmaxf(largest, fmaxf(scores.of[i][n][2 * half], scores.of[i][n][2 * half + 1]));
        largest = max_of_quad(largest);
        const float shift = largest * kScale;
        const float rescale = fast_exp2(fmaf(max[i][half], kScale, -shift));
        max[i][half] = largest;
        sum[i][half] *= rescale;
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            scores.of[i][n][e] = fast_exp2(fmaf(scores.of[i][n][e], kScale, -shift));
            sum[i][half] += scores.of[i][n][e];
          }
        }
#pragma unroll
        for (int n = 0; n < kWidth / 8; ++n) {
          context.of[i][n][2 * half] *= rescale;
          context.of[i][n][2 * half + 1] *= rescale;
        }
      }
    }
  }
};

template <int kGroups>
__device__ inline void drop(Sums<kGroups, kStep>& weights, const KeepWords<kGroups, kStep>& keep) {
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (!keep.is_kept(i, n, e)) weights.of[i][n][e] = 0;
    }
  }
}

// Divides by the sum of exponentials and writes the warp's rows of context and lse.
template <int kWidth>
__device__ inline void finish(const AttentionArguments& args, const OwnedItem& item, int warp_row,
                              const RunningSoftmax<kWidth>& softmax,
                              const Sums<OwnedCut<kWidth>::kGroups, kWidth>& context, std::byte* through) {
  constexpr int kGroups = OwnedCut<kWidth>::kGroups;
  const auto [g, t] = lane_place();
  const int num_rows = item.num_rows - warp_row;
  const std::int64_t first_row = item.first_row + warp_row;
  float factors[kGroups][2];
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_of_quad(softmax.sum[i][half]);
      factors[i][half] = __fdividef(args.dropout_scale, sum);
      const int row = 16 * i + 8 * half + g;
      if (t == 0 && row < num_rows) {
        args.lse_HT[std::int64_t{item.head} * args.num_rows + first_row + row] =
            softmax.max[i][half] * kScoreScale<kWidth> + logf(sum);
      }
    }
  }
  const int row_stride = args.num_heads * kWidth;
  store_rows(context, factors, through, args.context_THK + first_row * row_stride + item.head * kWidth,
             row_stride, num_rows);
}

// Attention of the owned rows.
template <int kWidth, bool kDropout>
__device__ inline void attend(const AttentionArguments& args, const OwnedItem& item, Shared<kWidth>& shared) {
  using Rows = SharedRows<kWidth>;
  using Cut = OwnedCut<kWidth>;
  constexpr int kStageBytes = kStep * kWidth * 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * Cut::kWarpRows;
  const int head_stride = args.num_heads * kWidth;
  const int token_stride = 3 * head_stride;
  const int length = item.length;
  const __nv_bfloat16* q = args.qkv_T3HK + item.first_row * token_stride + item.head * kWidth;
  const __nv_bfloat16* k =
      args.qkv_T3HK + std::int64_t{item.start} * token_stride + head_stride + item.head * kWidth;
  const std::uint32_t k_stages = shared_address(shared.k);
  const std::uint32_t v_stages = shared_address(shared.v);
  const auto copy_step = [&](int step) {
    const int stage_bytes = step % kStages * kStageBytes;
    const __nv_bfloat16* keys = k + std::int64_t{step} * kStep * token_stride;
    const int num_keys = length - step * kStep;
    copy_rows_async<kStep, kWidth, Cut::kThreads>(k_stages + stage_bytes, keys, token_stride, num_keys);
    copy_rows_async<kStep, kWidth, Cut::kThreads>(v_stages + stage_bytes, keys + head_stride, token_stride,
                                                  num_keys);
    commit_copies();
  };
  copy_rows_async<Cut::kRows, kWidth, Cut::kThreads>(shared_address(shared.q), q, token_stride,
                                                     item.num_rows);
  copy_step(0);

  const bool has_rows = warp_row < item.num_rows;
  const int num_steps = (length + kStep - 1) / kStep;
  Queries<kWidth> queries;
  RunningSoftmax<kWidth> softmax;
  Sums<Cut::kGroups, kWidth> context;
  auto keep = make_keep<kDropout, Cut::kGroups, kStep>(args.keep, args.keep.by_query, item.head,
                                                       item.first_row + warp_row, item.num_rows - warp_row);
  for (int step = 0; step < num_steps; ++step) {
    wait_for_copies();
    // The step's keys and values are here; and nobody reads those of the step before any more.
    __syncthreads();
    if (step + 1 < num_steps) copy_step(step + 1);
    if (!has_rows) continue;
    if (step == 0) queries.load(shared_address(shared.q) + warp_row * Rows::kRowBytes);
    keep.load(step);
    const int stage_bytes = step % kStages * kStageBytes;
    Sums<Cut::kGroups, kStep> scores;
    score(scores, queries, k_stages + stage_bytes + Rows::along_width(lane));
    if (length - step * kStep < kStep) mask_end(scores, length - step * kStep);
    softmax.exponentiate(scores, context);
    if constexpr (kDropout) drop(scores, keep);
    multiply_sums(context, scores, v_stages + stage_bytes + Rows::along_rows(lane));
  }
  if (has_rows) finish<kWidth>(args, item, warp_row, softmax, context, shared.q + warp_row * Rows::kRowBytes);
}

template <int kWidth, bool kDropout>
__global__ void __launch_bounds__(OwnedCut<kWidth>::kThreads, kBlocksPerMultiprocessor<kWidth>)
    attention_forward_kernel(const __grid_constant__ AttentionArguments args) {
  extern __shared__ std::byte shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kWidth>*>(shared_bytes);
  GapList{args.gaps, args.num_gaps}.zero(args.context_THK, args.num_heads * kWidth,
                                         static_cast<int>(threadIdx.x), OwnedCut<kWidth>::kThreads);
  const int num_items = OwnedItem::count(args);
  for (int index = static_cast<int>(blockIdx.x); index < num_items; index += static_cast<int>(gridDim.x)) {
    const OwnedItem item(args, index);
    if (item.num_rows <= 0) continue;
    attend<kWidth, kDropout>(args, item, shared);
    __syncthreads();  // The next item's rows overwrite this one's.
  }
}

template <int kWidth, bool kDropout>
cudaError_t launch(const AttentionArguments& args, cudaStream_t stream) {
  return launch_over_items(attention_forward_kernel<kWidth, kDropout>, kBlocksPerMultiprocessor<kWidth>,
                           OwnedCut<kWidth>::kThreads, sizeof(Shared<kWidth>), args, stream);
}

}  // namespace

cudaError_t attention_forward_sm80(const AttentionArguments& args, cudaStream_t stream) {
  const bool has_dropout = args.keep.by_query != nullptr;
  if (args.head_width == 64) return (has_dropout ? launch<64, true> : launch<64, false>)(args, stream);
  if (args.head_width == 128) return (has_dropout ? launch<128, true> : launch<128, false>)(args, stream);
  return cudaErrorInvalidValue;
}

}  // namespace plenum::kernels::cuda
