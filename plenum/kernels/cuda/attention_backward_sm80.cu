#include <cmath>
#include <numbers>

#include "plenum/kernels/cuda/attention_sm80.h"
#include "plenum/kernels/cuda/warp_matrix.cuh"

namespace plenum::kernels::cuda {
namespace {

// One kernel for both halves of backward: a thread block owns a tile of rows and sums over columns that go
// by.
//
//   owner     rows      columns   A1  A2   B1  B2   sums
//   Queries   queries   keys      Q   dO   K   V    dQ += dS B1
//   Keys      keys      queries   K   V    Q   dO   dK += dS B1,  dV += P B2
//
// Either way S = A1 B1^T and dP = A2 B2^T (for keys, transposed), P = exp(S - lse), dS = P (F dP - D).
// Computing S and dP twice costs two products of seven; in return every sum has one owner and nothing is
// added in memory.
enum class Owner { Queries, Keys };

constexpr int kTileRows = 128;
constexpr int kStep = 32;  // columns that go by at once
constexpr int kStages = 2;

template <int kWidth>
struct Cut {
  static constexpr int kGroups = kWidth == 64 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kGroups;
  static constexpr int kThreads = 32 * kTileRows / kWarpRows;
};
template <int kWidth, Owner kOwner>
constexpr int kBlocksPerMultiprocessor = kWidth == 128 ? 1 : (kOwner == Owner::Queries ? 3 : 2);

template <int kWidth>
struct alignas(256) Shared {
  std::byte a1[kTileRows * kWidth * 2];  // at last dQ or dK
  std::byte a2[kTileRows * kWidth * 2];  // at last dV
  std::byte b1[kStages][kStep * kWidth * 2];
  std::byte b2[kStages][kStep * kWidth * 2];
  AttentionRowStatistics columns[kStages][kStep];  // where queries are the columns
};

struct Problem {
  AttentionBackwardSm80 tensors;
  float exponent_scale;  // log2 e / sqrt K
  float score_scale;     // 1 / sqrt K
};

// Rows of one head within a tensor of all rows.
struct HeadRows {
  const __nv_bfloat16* data;
  int stride;
};

// sums[rows, columns] = A B^T over the head width, both in shared memory.
template <int kWidth, int kGroups>
__device__ inline void multiply_heads(Sums<kGroups, kStep>& sums, std::uint32_t a, std::uint32_t b) {
  constexpr int kGroupBytes = 16 * SharedRows<kWidth>::kRowBytes;
#pragma unroll
  for (int s = 0; s < kWidth / 16; ++s) {
    std::uint32_t left[kGroups][4];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) load_matrices(left[i], (a ^ (s << 5)) + i * kGroupBytes);
#pragma unroll
    for (int n = 0; n < kStep / 16; ++n) {
      std::uint32_t right[4];
      load_matrices(right, (b ^ (s << 5)) + n * kGroupBytes);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        multiply_add(sums.of[i][2 * n], left[i], right[0], right[1]);
        multiply_add(sums.of[i][2 * n + 1], left[i], right[2], right[3]);
      }
    }
  }
}

// What belongs to the query of each element: of a thread's rows in registers, or of the columns in shared
// memory.
template <Owner kOwner, int kGroups>
struct Statistics {
  AttentionRowStatistics rows[kGroups][2];
  const AttentionRowStatistics* columns;

  __device__ AttentionRowStatistics at(int group, int half, int column) const {
    if constexpr (kOwner == Owner::Queries) {
      return rows[group][half];
    } else {
      return columns[column];
    }
  }
};

// From S and dP makes dS, in place of dP, and the weights after dropout without their factor, in place of S.
template <Owner kOwner, bool kDropout, int kGroups>
__device__ inline void differentiate(Sums<kGroups, kStep>& s, Sums<kGroups, kStep>& dp,
                                     const Statistics<kOwner, kGroups>& statistics,
                                     const std::uint32_t (&keep)[kGroups][2], float exponent_scale,
                                     float dropout_scale) {
  const int first_column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto [lse, d] = statistics.at(i, e / 2, 8 * n + first_column + e % 2);
        const float p = fast_exp2(fmaf(s.of[i][n][e], exponent_scale, -lse));
        if constexpr (kDropout) {
          const bool is_kept = (keep[i][e / 2] & (1U << (2 * n + e % 2))) != 0;
          s.of[i][n][e] = is_kept ? p : 0;
          dp.of[i][n][e] = p * ((is_kept ? dp.of[i][n][e] * dropout_scale : 0) - d);
        } else {
          s.of[i][n][e] = p;
          dp.of[i][n][e] = p * (dp.of[i][n][e] - d);
        }
      }
    }
  }
}

// Columns behind the sequence's end get no weight. Only where keys are the columns: queries behind the end
// are zeros, statistics included, so they add nothing.
template <int kGroups>
__device__ inline void mask_end(Sums<kGroups, kStep>& scores, int num_columns) {
  const int first_column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (8 * n + first_column + e % 2 >= num_columns) scores.of[i][n][e] = -INFINITY;
      }
    }
  }
}

template <int kWidth, Owner kOwner, bool kDropout>
__global__ void __launch_bounds__(Cut<kWidth>::kThreads, kBlocksPerMultiprocessor<kWidth, kOwner>)
    attention_backward_kernel(const Problem problem) {
  using Rows = SharedRows<kWidth>;
  constexpr int kGroups = Cut<kWidth>::kGroups;
  constexpr int kThreads = Cut<kWidth>::kThreads;
  constexpr int kWarpRows = Cut<kWidth>::kWarpRows;
  constexpr int kStageBytes = kStep * kWidth * 2;
  extern __shared__ std::byte shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kWidth>*>(shared_bytes);

  const AttentionBackwardSm80& tensors = problem.tensors;
  const int num_heads = tensors.num_heads;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  const int head_stride = num_heads * kWidth;
  const std::uint32_t a1 = shared_address(shared.a1);
  const std::uint32_t a2 = shared_address(shared.a2);
  const std::uint32_t b1 = shared_address(shared.b1);
  const std::uint32_t b2 = shared_address(shared.b2);
  const int warp_bytes = warp_row * Rows::kRowBytes;
  const std::uint32_t* keep_bits = kOwner == Owner::Queries ? tensors.keep.by_query : tensors.keep.by_key;

  const int num_items = *tensors.num_tiles * num_heads;
  for (int item = static_cast<int>(blockIdx.x); item < num_items; item += static_cast<int>(gridDim.x)) {
    const AttentionTile tile = tensors.tiles[item / num_heads];
    const int head = item % num_heads;
    const int num_rows = min(kTileRows, tile.length - tile.first);
    const int num_steps = (tile.length + kStep - 1) / kStep;
    const std::int64_t first_row = std::int64_t{tile.start} + tile.first;
    const __nv_bfloat16* head_qkv =
        tensors.qkv_T3HK + std::int64_t{tile.start} * 3 * head_stride + head * kWidth;
    const HeadRows q{head_qkv, 3 * head_stride};
    const HeadRows k{head_qkv + head_stride, 3 * head_stride};
    const HeadRows v{head_qkv + 2 * head_stride, 3 * head_stride};
    const HeadRows dcontext{tensors.dcontext_THK + std::int64_t{tile.start} * head_stride + head * kWidth,
                            head_stride};
    const AttentionRowStatistics* all_statistics =
        tensors.statistics_HT + std::int64_t{head} * tensors.num_rows + tile.start;
    constexpr bool kQueries = kOwner == Owner::Queries;
    const HeadRows rows1 = kQueries ? q : k;
    const HeadRows rows2 = kQueries ? dcontext : v;
    const HeadRows columns1 = kQueries ? k : q;
    const HeadRows columns2 = kQueries ? v : dcontext;

    const auto copy_step = [&](int step) {
      const int stage = step % kStages;
      const std::int64_t first = std::int64_t{step} * kStep;
      const int num_columns = tile.length - step * kStep;
      copy_rows_async<kStep, kWidth, kThreads>(
          b1 + stage * kStageBytes, columns1.data + first * columns1.stride, columns1.stride, num_columns);
      copy_rows_async<kStep, kWidth, kThreads>(
          b2 + stage * kStageBytes, columns2.data + first * columns2.stride, columns2.stride, num_columns);
      if constexpr (!kQueries) {
        if (const int column = static_cast<int>(threadIdx.x); column < kStep) {
          const bool is_real = column < num_columns;
          copy_async<8>(shared_address(&shared.columns[stage][column]),
                        all_statistics + first + (is_real ? column : 0), is_real);
        }
      }
      commit_copies();
    };
    copy_rows_async<kTileRows, kWidth, kThreads>(a1, rows1.data + std::int64_t{tile.first} * rows1.stride,
                                                 rows1.stride, num_rows);
    copy_rows_async<kTileRows, kWidth, kThreads>(a2, rows2.data + std::int64_t{tile.first} * rows2.stride,
                                                 rows2.stride, num_rows);
    copy_step(0);

    const bool has_rows = warp_row < num_rows;
    Statistics<kOwner, kGroups> statistics;
    if constexpr (kQueries) {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = warp_row + 16 * i + 8 * half + lane / 4;
          statistics.rows[i][half] =
              row < num_rows ? all_statistics[tile.first + row] : AttentionRowStatistics{0, 0};
        }
      }
    }
    const std::uint32_t* keep_words = nullptr;
    std::uint32_t keep[kGroups][2];
    if constexpr (kDropout)
      keep_words = keep_bits + tensors.keep.first_word(head, first_row + warp_row + lane / 4) + lane % 4;

    Sums<kGroups, kWidth> sums1;
    Sums<kGroups, kWidth> sums2;
    for (int step = 0; step < num_steps; ++step) {
      wait_for_copies();
      __syncthreads();
      if (step + 1 < num_steps) copy_step(step + 1);
      if (!has_rows) continue;
      if constexpr (kDropout) {
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
      const std::uint32_t b1_stage = b1 + step % kStages * kStageBytes;
      const std::uint32_t b2_stage = b2 + step % kStages * kStageBytes;
      Sums<kGroups, kStep> s;
      multiply_heads<kWidth>(s, a1 + warp_bytes + Rows::along_rows(lane), b1_stage + Rows::along_width(lane));
      Sums<kGroups, kStep> dp;
      multiply_heads<kWidth>(dp, a2 + warp_bytes + Rows::along_rows(lane),
                             b2_stage + Rows::along_width(lane));
      if constexpr (kQueries) {
        const int num_columns = tile.length - step * kStep;
        if (num_columns < kStep) mask_end(s, num_columns);
      }
      statistics.columns = shared.columns[step % kStages];
      differentiate<kOwner, kDropout>(s, dp, statistics, keep, problem.exponent_scale, tensors.dropout_scale);
      if constexpr (!kQueries) multiply_sums(sums2, s, b2_stage + Rows::along_rows(lane));
      multiply_sums(sums1, dp, b1_stage + Rows::along_rows(lane));
    }

    if (has_rows) {
      const auto store = [&](const Sums<kGroups, kWidth>& sums, float factor, std::byte* through, int part) {
        float factors[kGroups][2];
#pragma unroll
        for (int i = 0; i < kGroups; ++i) factors[i][0] = factors[i][1] = factor;
        store_rows(sums, factors, through + warp_bytes,
                   tensors.dqkv_T3HK + ((first_row + warp_row) * 3 + part) * head_stride + head * kWidth,
                   3 * head_stride, num_rows - warp_row);
      };
      if constexpr (kQueries) {
        store(sums1, problem.score_scale, shared.a1, 0);
      } else {
        store(sums1, problem.score_scale, shared.a1, 1);
        store(sums2, tensors.dropout_scale, shared.a2, 2);
      }
    }
    __syncthreads();  // The next item's rows overwrite this one's.
  }
}

template <int kWidth, Owner kOwner, bool kDropout>
void launch(cudaStream_t stream, int num_multiprocessors, const AttentionBackwardSm80& args) {
  const float score_scale = 1 / std::sqrt(float{kWidth});
  const Problem problem{.tensors = args,
                        .exponent_scale = std::numbers::log2e_v<float> * score_scale,
                        .score_scale = score_scale};
  const auto kernel = attention_backward_kernel<kWidth, kOwner, kDropout>;
  constexpr int kSharedBytes = sizeof(Shared<kWidth>);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  kernel<<<num_multiprocessors * kBlocksPerMultiprocessor<kWidth, kOwner>, Cut<kWidth>::kThreads,
           kSharedBytes, stream>>>(problem);
}

template <Owner kOwner>
void launch(cudaStream_t stream, int num_multiprocessors, const AttentionBackwardSm80& args) {
  const bool has_dropout = args.keep.by_query != nullptr;
  if (args.head_width == 64) {
    const auto start = has_dropout ? launch<64, kOwner, true> : launch<64, kOwner, false>;
    start(stream, num_multiprocessors, args);
  } else {
    const auto start = has_dropout ? launch<128, kOwner, true> : launch<128, kOwner, false>;
    start(stream, num_multiprocessors, args);
  }
}

}  // namespace

void attention_backward_queries_sm80(cudaStream_t stream, int num_multiprocessors,
                                     const AttentionBackwardSm80& args) {
  launch<Owner::Queries>(stream, num_multiprocessors, args);
}

void attention_backward_keys_sm80(cudaStream_t stream, int num_multiprocessors,
                                  const AttentionBackwardSm80& args) {
  launch<Owner::Keys>(stream, num_multiprocessors, args);
}

}  // namespace plenum::kernels::cuda
