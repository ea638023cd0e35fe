#include <numbers>
#include <type_traits>

#include "plenum/kernels/cuda/attention/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention/attention_mma.cuh"
#include "plenum/kernels/cuda/attention/attention_sm80.h"
#include "plenum/kernels/cuda/attention/warp_matrix.cuh"

namespace plenum::kernels::cuda {
namespace {

// One kernel for both halves of backward: a thread block owns rows and sums over columns that go
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

constexpr int kStep = 32;
constexpr int kStages = 2;

template <int kWidth, Owner kOwner>
constexpr int kBlocksPerMultiprocessor = kWidth == 128 ? 1 : (kOwner == Owner::Queries ? 3 : 2);

template <int kWidth>
struct alignas(256) Shared {
  std::byte a1[OwnedCut<kWidth>::kRows * kWidth * 2];  // at last dQ or dK
  std::byte a2[OwnedCut<kWidth>::kRows * kWidth * 2];  // at last dV
  std::byte b1[kStages][kStep * kWidth * 2];
  std::byte b2[kStages][kStep * kWidth * 2];
  union {
    QueryStatistics rows[OwnedCut<kWidth>::kRows];
    QueryStatistics columns[kStages][kStep];
  };
};

// Rows of one head within a tensor of all rows.
struct HeadRows {
  const __nv_bfloat16* data;
  int stride;

  __device__ const __nv_bfloat16* row(std::int64_t index) const { return data + index * stride; }
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
template <int kGroups>
struct OfRows {
  QueryStatistics of[kGroups][2];

  __device__ void load(const QueryStatistics* warp_rows) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      of[i][0] = warp_rows[16 * i + lane_place().g];
      of[i][1] = warp_rows[16 * i + 8 + lane_place().g];
    }
  }
  __device__ QueryStatistics at(int group, int half, int) const {
    return of[group][half];
  }
};
struct OfColumns {
  const QueryStatistics* of;
  __device__ QueryStatistics at(int, int, int column) const { return of[column]; }
};

// From S and dP makes dS, in place of dP, and the weights after dropout, in place of S; both without the
// scale of dropout.
template <int kWidth, int kGroups, typename Statistics, typename Keep>
__device__ inline void differentiate(Sums<kGroups, kStep>& s, Sums<kGroups, kStep>& dp,
                                     const Statistics& statistics, const Keep& keep) {
  const int first_column = 2 * lane_place().t;
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto [lse, d] = statistics.at(i, e / 2, 8 * n + first_column + e % 2);
        const float p = fast_exp2(fmaf(s.of[i][n][e], kExponentScale<kWidth>, -lse));
        if constexpr (std::is_same_v<Keep, KeepAll>) {
          s.of[i][n][e] = p;
          dp.of[i][n][e] = p * (dp.of[i][n][e] - d);
        } else {
          const bool is_kept = keep.is_kept(i, n, e);
          s.of[i][n][e] = is_kept ? p : 0;
          dp.of[i][n][e] = p * ((is_kept ? dp.of[i][n][e] : 0) - d);
        }
      }
    }
  }
}

// A warp's rows of the context, on their way to D. Loaded while dO arrives.
template <int kWidth>
class ContextRows {
 public:
  __device__ ContextRows(const __nv_bfloat16* context, int row_stride, int num_rows) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int row = first_ + i * kRowsAtOnce;
      chunks_[i] = {0, 0, 0, 0};
      if (row < num_rows)
        chunks_[i] =
            __ldg(reinterpret_cast<const uint4*>(context + std::int64_t{row} * row_stride + chunk_ * 8));
    }
  }

  // With lse and dO of the same rows, of which num_rows exist, gives their statistics; zeros for the others.
  __device__ void finish(const float* lse, const std::byte* dcontext, float dropout_scale, int num_rows,
                         QueryStatistics* shared, QueryStatistics* global) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int row = first_ + i * kRowsAtOnce;
      float d = dot_chunks(chunks_[i], *reinterpret_cast<const uint4*>(
                                           dcontext + SharedRows<kWidth>::offset_bytes(row, chunk_)));
#pragma unroll
      for (int s = kChunks / 2; s > 0; s /= 2) d += __shfl_xor_sync(~0U, d, s);
      if (chunk_ != 0) continue;
      shared[row] = {0, 0};
      if (row < num_rows)
        shared[row] = global[row] = {lse[row] * std::numbers::log2e_v<float>, d / dropout_scale};
    }
    __syncwarp();
  }

 private:
  static constexpr int kChunks = SharedRows<kWidth>::kChunks;
  static constexpr int kRowsAtOnce = 32 / kChunks;
  static constexpr int kLoads = OwnedCut<kWidth>::kWarpRows / kRowsAtOnce;
  const int chunk_ = static_cast<int>(threadIdx.x) % kChunks;
  const int first_ = static_cast<int>(threadIdx.x) % 32 / kChunks;
  uint4 chunks_[kLoads];
};

// A warp's sums, with one factor for all, through its rows of a tile in shared memory to one part of dqkv.
template <int kWidth>
__device__ inline void store_part(const AttentionArguments& args, const OwnedItem& item, int warp_row,
                                  int part, const Sums<OwnedCut<kWidth>::kGroups, kWidth>& sums, float factor,
                                  std::byte* tile) {
  constexpr int kGroups = OwnedCut<kWidth>::kGroups;
  const int head_stride = args.num_heads * kWidth;
  float factors[kGroups][2];
#pragma unroll
  for (int i = 0; i < kGroups; ++i) factors[i][0] = factors[i][1] = factor;
  store_rows(sums, factors, tile + warp_row * SharedRows<kWidth>::kRowBytes,
             args.dqkv_T3HK + ((item.first_row + warp_row) * 3 + part) * head_stride + item.head * kWidth,
             3 * head_stride, item.num_rows - warp_row);
}

// The tensors of a head from the sequence's first row on, by their places in the table above.
template <int kWidth, Owner kOwner>
struct Operands {
  HeadRows a1, a2, b1, b2;

  __device__ Operands(const AttentionArguments& args, const OwnedItem& item) {
    const int head_stride = args.num_heads * kWidth;
    const std::int64_t start = item.start;
    const __nv_bfloat16* qkv = args.qkv_T3HK + start * 3 * head_stride + item.head * kWidth;
    const HeadRows q{qkv, 3 * head_stride};
    const HeadRows k{qkv + head_stride, 3 * head_stride};
    const HeadRows v{qkv + 2 * head_stride, 3 * head_stride};
    const HeadRows dcontext{args.dcontext_THK + start * head_stride + item.head * kWidth, head_stride};
    constexpr bool kQueries = kOwner == Owner::Queries;
    a1 = kQueries ? q : k;
    a2 = kQueries ? dcontext : v;
    b1 = kQueries ? k : q;
    b2 = kQueries ? v : dcontext;
  }
};

// Begins to copy the columns of a step, and where they are queries, their statistics.
template <int kWidth, Owner kOwner>
__device__ inline void copy_step(const Operands<kWidth, kOwner>& operands, const QueryStatistics* statistics,
                                 int length, int step, Shared<kWidth>& shared) {
  constexpr int kThreads = OwnedCut<kWidth>::kThreads;
  const int stage = step % kStages;
  const int first = step * kStep;
  const int num_columns = length - first;
  copy_rows_async<kStep, kWidth, kThreads>(shared_address(shared.b1[stage]), operands.b1.row(first),
                                           operands.b1.stride, num_columns);
  copy_rows_async<kStep, kWidth, kThreads>(shared_address(shared.b2[stage]), operands.b2.row(first),
                                           operands.b2.stride, num_columns);
  if constexpr (kOwner == Owner::Keys) {
    if (const int column = static_cast<int>(threadIdx.x); column < kStep) {
      copy_async<sizeof(QueryStatistics)>(shared_address(&shared.columns[stage][column]),
                                          statistics + first + column, column < num_columns);
    }
  }
  commit_copies();
}

// The gradients of the owned rows. Columns behind the end need masking only where they are keys: queries
// there are zeros, statistics included, so they add nothing.
template <int kWidth, Owner kOwner, bool kDropout>
__device__ inline void differentiate_rows(const AttentionArguments& args, const OwnedItem& item,
                                          Shared<kWidth>& shared) {
  using Rows = SharedRows<kWidth>;
  using Cut = OwnedCut<kWidth>;
  constexpr bool kQueries = kOwner == Owner::Queries;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * Cut::kWarpRows;
  const int num_rows = item.num_rows - warp_row;  // of the warp
  const int length = item.length;
  const std::int64_t first_query = std::int64_t{item.head} * args.num_rows + item.start;  // in [H, T]
  auto* const statistics_HT = static_cast<QueryStatistics*>(args.scratch);

  const Operands<kWidth, kOwner> operands(args, item);
  copy_rows_async<Cut::kRows, kWidth, Cut::kThreads>(shared_address(shared.a1), operands.a1.row(item.first),
                                                     operands.a1.stride, item.num_rows);
  copy_rows_async<Cut::kRows, kWidth, Cut::kThreads>(shared_address(shared.a2), operands.a2.row(item.first),
                                                     operands.a2.stride, item.num_rows);
  copy_step(operands, statistics_HT + first_query, length, 0, shared);
  std::conditional_t<kQueries, OfRows<Cut::kGroups>, OfColumns> statistics;
  if constexpr (kQueries) {
    const int head_stride = args.num_heads * kWidth;
    const ContextRows<kWidth> context(
        args.context_THK + (item.first_row + warp_row) * head_stride + item.head * kWidth, head_stride,
        num_rows);
    wait_for_copies();
    __syncthreads();
    const std::int64_t first = first_query + item.first + warp_row;
    context.finish(args.lse_HT + first, shared.a2 + warp_row * Rows::kRowBytes, args.dropout_scale, num_rows,
                   shared.rows + warp_row, statistics_HT + first);
    statistics.load(shared.rows + warp_row);
  }
  auto keep =
      make_keep<kDropout, Cut::kGroups, kStep>(args.keep, kQueries ? args.keep.by_query : args.keep.by_key,
                                               item.head, item.first_row + warp_row, num_rows);
  const std::uint32_t a1 = shared_address(shared.a1) + warp_row * Rows::kRowBytes + Rows::along_rows(lane);
  const std::uint32_t a2 = shared_address(shared.a2) + warp_row * Rows::kRowBytes + Rows::along_rows(lane);
  Sums<Cut::kGroups, kWidth> sums1;
  Sums<Cut::kGroups, kWidth> sums2;
  const int num_steps = (length + kStep - 1) / kStep;
  for (int step = 0; step < num_steps; ++step) {
    wait_for_copies();
    // The step's columns are here; and nobody reads those of the step before any more.
    __syncthreads();
    if (step + 1 < num_steps) copy_step(operands, statistics_HT + first_query, length, step + 1, shared);
    if (num_rows <= 0) continue;
    if constexpr (!kQueries) statistics.of = shared.columns[step % kStages];
    keep.load(step);
    const std::uint32_t b1 = shared_address(shared.b1[step % kStages]);
    const std::uint32_t b2 = shared_address(shared.b2[step % kStages]);
    Sums<Cut::kGroups, kStep> s;
    multiply_heads<kWidth>(s, a1, b1 + Rows::along_width(lane));
    Sums<Cut::kGroups, kStep> dp;
    multiply_heads<kWidth>(dp, a2, b2 + Rows::along_width(lane));
    if (kQueries && length - step * kStep < kStep) mask_end(s, length - step * kStep);
    differentiate<kWidth>(s, dp, statistics, keep);
    if constexpr (!kQueries) multiply_sums(sums2, s, b2 + Rows::along_rows(lane));
    multiply_sums(sums1, dp, b1 + Rows::along_rows(lane));
  }
  if (num_rows <= 0) return;
  store_part<kWidth>(args, item, warp_row, kQueries ? 0 : 1, sums1, args.dropout_scale * kScoreScale<kWidth>,
                     shared.a1);
  if constexpr (!kQueries) store_part<kWidth>(args, item, warp_row, 2, sums2, args.dropout_scale, shared.a2);
}

template <int kWidth, Owner kOwner, bool kDropout>
__global__ void __launch_bounds__(OwnedCut<kWidth>::kThreads, kBlocksPerMultiprocessor<kWidth, kOwner>)
    attention_backward_kernel(const __grid_constant__ AttentionArguments args) {
  extern __shared__ std::byte shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kWidth>*>(shared_bytes);
  if constexpr (kOwner == Owner::Queries) {
    GapList{args.gaps, args.num_gaps}.zero(args.dqkv_T3HK, 3 * args.num_heads * kWidth,
                                           static_cast<int>(threadIdx.x), OwnedCut<kWidth>::kThreads);
  }
  const int num_items = OwnedItem::count(args);
  for (int index = static_cast<int>(blockIdx.x); index < num_items; index += static_cast<int>(gridDim.x)) {
    const OwnedItem item(args, index);
    if (item.num_rows <= 0) continue;
    differentiate_rows<kWidth, kOwner, kDropout>(args, item, shared);
    __syncthreads();  // The next item's rows overwrite this one's.
  }
}

template <int kWidth, Owner kOwner, bool kDropout>
cudaError_t launch(const AttentionArguments& args, cudaStream_t stream) {
  return launch_over_items(attention_backward_kernel<kWidth, kOwner, kDropout>,
                           kBlocksPerMultiprocessor<kWidth, kOwner>, OwnedCut<kWidth>::kThreads,
                           sizeof(Shared<kWidth>), args, stream);
}

// Queries first: they leave the statistics that keys need.
template <int kWidth, bool kDropout>
cudaError_t launch_both(const AttentionArguments& args, cudaStream_t stream) {
  if (cudaError_t error = launch<kWidth, Owner::Queries, kDropout>(args, stream)) return error;
  return launch<kWidth, Owner::Keys, kDropout>(args, stream);
}

}  // namespace

cudaError_t attention_backward_sm80(const AttentionArguments& args, cudaStream_t stream) {
  const bool has_dropout = args.keep.by_query != nullptr;
  if (args.head_width == 64)
    return (has_dropout ? launch_both<64, true> : launch_both<64, false>)(args, stream);
  if (args.head_width == 128)
    return (has_dropout ? launch_both<128, true> : launch_both<128, false>)(args, stream);
  return cudaErrorInvalidValue;
}

}  // namespace plenum::kernels::cuda
