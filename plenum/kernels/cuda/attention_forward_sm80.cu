#include <cmath>
#include <numbers>

#include "plenum/kernels/cuda/attention_sm80.h"
#include "plenum/kernels/cuda/warp_matrix.cuh"

namespace plenum::kernels::cuda {
namespace {

constexpr int kTileRows = 128;  // queries of a tile
constexpr int kStep = 64;       // keys that go by at once
constexpr int kStages = 2;      // one step's keys and values arrive while the other's are worked on

// At head width 64 a warp has 32 queries: what it reads of keys and values then serves two products each. At
// 128 the sums of 32 queries would not fit its registers.
template <int kWidth>
struct Cut {
  static constexpr int kGroups = kWidth == 64 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kGroups;
  static constexpr int kThreads = 32 * kTileRows / kWarpRows;
  static constexpr int kBlocksPerMultiprocessor = kWidth == 64 ? 2 : 1;
};

template <int kWidth>
struct alignas(256) Shared {
  std::byte q[kTileRows * kWidth * 2];  // at last the context
  std::byte k[kStages][kStep * kWidth * 2];
  std::byte v[kStages][kStep * kWidth * 2];
};

struct Problem {
  AttentionForwardSm80 tensors;
  float exponent_scale;  // log2 e / sqrt K: exponentials are powers of two
};

// The running softmax of a thread's rows. `sum` is over the thread's own columns until the end.
template <int kGroups>
struct RunningSoftmax {
  float max[kGroups][2];
  float sum[kGroups][2];
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

// scores[queries, keys] = Q K^T
template <int kWidth, int kGroups>
__device__ inline void score(Sums<kGroups, kStep>& scores, const std::uint32_t (&q)[kGroups][kWidth / 16][4],
                             std::uint32_t k) {
#pragma unroll
  for (int s = 0; s < kWidth / 16; ++s) {
#pragma unroll
    for (int n = 0; n < kStep / 16; ++n) {
      std::uint32_t right[4];
      load_matrices(right, (k ^ (s << 5)) + n * 16 * SharedRows<kWidth>::kRowBytes);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        multiply_add(scores.of[i][2 * n], q[i][s], right[0], right[1]);
        multiply_add(scores.of[i][2 * n + 1], q[i][s], right[2], right[3]);
      }
    }
  }
}

// Keys behind the sequence's end get no weight.
template <int kGroups>
__device__ inline void mask_end(Sums<kGroups, kStep>& scores, int num_keys) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (8 * n + column + e % 2 >= num_keys) scores.of[i][n][e] = -INFINITY;
      }
    }
  }
}

// Replaces scores by exponentials relative to the largest score so far, and rescales what was summed before.
template <int kGroups, int kWidth>
__device__ inline void exponentiate(Sums<kGroups, kStep>& scores, RunningSoftmax<kGroups>& softmax,
                                    Sums<kGroups, kWidth>& context, float exponent_scale) {
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = softmax.max[i][half];
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n)
        largest = fmaxf(largest, fmaxf(scores.of[i][n][2 * half], scores.of[i][n][2 * half + 1]));
      largest = max_of_quad(largest);
      const float shift = largest * exponent_scale;
      const float rescale = fast_exp2(softmax.max[i][half] * exponent_scale - shift);
      softmax.max[i][half] = largest;
      float sum = softmax.sum[i][half] * rescale;
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores.of[i][n][e] = fast_exp2(fmaf(scores.of[i][n][e], exponent_scale, -shift));
          sum += scores.of[i][n][e];
        }
      }
      softmax.sum[i][half] = sum;
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) {
        context.of[i][n][2 * half] *= rescale;
        context.of[i][n][2 * half + 1] *= rescale;
      }
    }
  }
}

template <int kGroups>
__device__ inline void drop(Sums<kGroups, kStep>& weights, const std::uint32_t (&keep)[kGroups][2]) {
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if ((keep[i][e / 2] & (1U << (2 * n + e % 2))) == 0) weights.of[i][n][e] = 0;
      }
    }
  }
}

template <int kWidth, bool kDropout>
__global__ void __launch_bounds__(Cut<kWidth>::kThreads, Cut<kWidth>::kBlocksPerMultiprocessor)
    attention_forward_kernel(const Problem problem) {
  using Rows = SharedRows<kWidth>;
  constexpr int kGroups = Cut<kWidth>::kGroups;
  constexpr int kThreads = Cut<kWidth>::kThreads;
  constexpr int kWarpRows = Cut<kWidth>::kWarpRows;
  extern __shared__ std::byte shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kWidth>*>(shared_bytes);

  const AttentionForwardSm80& tensors = problem.tensors;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  const int num_heads = tensors.num_heads;
  const int token_stride = 3 * num_heads * kWidth;
  const std::uint32_t q_address = shared_address(shared.q);
  const std::uint32_t k_address = shared_address(shared.k);
  const std::uint32_t v_address = shared_address(shared.v);
  constexpr int kStageBytes = kStep * kWidth * 2;

  const int num_items = *tensors.num_tiles * num_heads;
  for (int item = static_cast<int>(blockIdx.x); item < num_items; item += static_cast<int>(gridDim.x)) {
    const AttentionTile tile = tensors.tiles[item / num_heads];
    const int head = item % num_heads;
    const int num_queries = min(kTileRows, tile.length - tile.first);
    const int num_steps = (tile.length + kStep - 1) / kStep;
    const __nv_bfloat16* q = tensors.qkv_T3HK + std::int64_t{tile.start} * token_stride + head * kWidth;
    const __nv_bfloat16* k = q + num_heads * kWidth;
    const __nv_bfloat16* v = k + num_heads * kWidth;
    const auto copy_step = [&](int step) {
      const int stage_bytes = step % kStages * kStageBytes;
      const std::int64_t first = std::int64_t{step} * kStep * token_stride;
      const int num_keys = tile.length - step * kStep;
      copy_rows_async<kStep, kWidth, kThreads>(k_address + stage_bytes, k + first, token_stride, num_keys);
      copy_rows_async<kStep, kWidth, kThreads>(v_address + stage_bytes, v + first, token_stride, num_keys);
      commit_copies();
    };
    copy_rows_async<kTileRows, kWidth, kThreads>(q_address, q + std::int64_t{tile.first} * token_stride,
                                                 token_stride, num_queries);
    copy_step(0);

    const bool has_rows = warp_row < num_queries;
    std::uint32_t q_operand[kGroups][kWidth / 16][4];
    RunningSoftmax<kGroups> softmax;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        softmax.max[i][half] = -INFINITY;
        softmax.sum[i][half] = 0;
      }
    }
    Sums<kGroups, kWidth> context;
    std::uint32_t keep[kGroups][2];
    const std::uint32_t* keep_words = nullptr;
    if constexpr (kDropout) {
      keep_words = tensors.keep.by_query +
                   tensors.keep.first_word(head, tile.start + tile.first + warp_row + lane / 4) + lane % 4;
    }

    for (int step = 0; step < num_steps; ++step) {
      wait_for_copies();
      // The step's keys and values are here; and nobody reads those of the step before any more.
      __syncthreads();
      if (step + 1 < num_steps) copy_step(step + 1);
      if (!has_rows) continue;
      if (step == 0) {
        const std::uint32_t own = q_address + warp_row * Rows::kRowBytes + Rows::along_rows(lane);
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
#pragma unroll
          for (int s = 0; s < kWidth / 16; ++s)
            load_matrices(q_operand[i][s], (own ^ (s << 5)) + i * 16 * Rows::kRowBytes);
        }
      }
      if constexpr (kDropout) {
        // A word is for two steps: its lower half, then its upper one.
        constexpr int kStepsPerBlock = 128 / kStep;
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            if (step % kStepsPerBlock == 0) {
              keep[i][half] = __ldg(keep_words + step / kStepsPerBlock * tensors.keep.block_stride() +
                                    (16 * i + 8 * half) * AttentionKeepBits::kWords);
            } else {
              keep[i][half] >>= kStep / 4;
            }
          }
        }
      }
      const int stage_bytes = step % kStages * kStageBytes;
      Sums<kGroups, kStep> scores;
      score<kWidth>(scores, q_operand, k_address + stage_bytes + Rows::along_width(lane));
      const int num_keys = tile.length - step * kStep;
      if (num_keys < kStep) mask_end(scores, num_keys);
      exponentiate(scores, softmax, context, problem.exponent_scale);
      if constexpr (kDropout) drop(scores, keep);
      multiply_sums(context, scores, v_address + stage_bytes + Rows::along_rows(lane));
    }

    if (has_rows) {
      float factors[kGroups][2];
      float* lse = tensors.lse_HT + std::int64_t{head} * tensors.num_rows + tile.start + tile.first;
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float sum = sum_of_quad(softmax.sum[i][half]);
          factors[i][half] = tensors.dropout_scale / sum;
          const int row = warp_row + 16 * i + 8 * half + lane / 4;
          if (lane % 4 == 0 && row < num_queries) {
            lse[row] = softmax.max[i][half] * problem.exponent_scale * std::numbers::ln2_v<float> + logf(sum);
          }
        }
      }
      const std::int64_t row_stride = std::int64_t{num_heads} * kWidth;
      store_rows(context, factors, shared.q + warp_row * Rows::kRowBytes,
                 tensors.context_THK + (tile.start + tile.first + warp_row) * row_stride + head * kWidth,
                 row_stride, num_queries - warp_row);
    }
    __syncthreads();  // The next item's rows overwrite this one's.
  }
}

template <int kWidth, bool kDropout>
void launch(cudaStream_t stream, int num_multiprocessors, const AttentionForwardSm80& args) {
  const Problem problem{.tensors = args,
                        .exponent_scale = std::numbers::log2e_v<float> / std::sqrt(float{kWidth})};
  const auto kernel = attention_forward_kernel<kWidth, kDropout>;
  constexpr int kSharedBytes = sizeof(Shared<kWidth>);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  kernel<<<num_multiprocessors * Cut<kWidth>::kBlocksPerMultiprocessor, Cut<kWidth>::kThreads, kSharedBytes,
           stream>>>(problem);
}

template <int kWidth>
void launch(cudaStream_t stream, int num_multiprocessors, const AttentionForwardSm80& args) {
  if (args.keep.by_query != nullptr) {
    launch<kWidth, true>(stream, num_multiprocessors, args);
  } else {
    launch<kWidth, false>(stream, num_multiprocessors, args);
  }
}

}  // namespace

void attention_forward_sm80(cudaStream_t stream, int num_multiprocessors, const AttentionForwardSm80& args) {
  if (args.head_width == 64) {
    launch<64>(stream, num_multiprocessors, args);
  } else {
    launch<128>(stream, num_multiprocessors, args);
  }
}

}  // namespace plenum::kernels::cuda
