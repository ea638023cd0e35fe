#pragma once

#include <cstdint>

#include "plenum/base/check.h"
#include "plenum/kernels/cuda/dropout.cuh"
#include "plenum/kernels/cuda/reduce.cuh"
#include "plenum/kernels/cuda/vector_io.cuh"

namespace plenum::kernels::cuda {

// How kernels over rows of width D share out their work: a thread owns eight neighbouring columns, a block
// whole rows, and it works on four of them at once, so that each thread has several loads in flight and the
// sums of four rows cost one barrier. What belongs to a column (gamma, its gradient) stays in registers.

inline constexpr int kRowsAtOnce = 4;

/// The widths of BERT get a kernel of their own, with twice the registers for each thread.
inline constexpr int kNarrowThreads = 128;
inline constexpr int kWideThreads = 512;
inline constexpr std::int64_t kMaxRowWidth = std::int64_t{kWideThreads} * kVectorWidth;

inline int threads_of_row(std::int64_t width) {
  base::check(width <= kMaxRowWidth, "rows on the GPU have at most {} elements: D={}", kMaxRowWidth, width);
  const std::int64_t vectors = (width + kVectorWidth - 1) / kVectorWidth;
  return static_cast<int>((vectors + kWarpSize - 1) / kWarpSize) * kWarpSize;
}

/// Rows of the block that begin at `first`; those from `end` on do not exist.
struct RowRange {
  std::int64_t first;
  std::int64_t end;
};

/// RowIdentities as kernels take them.
struct DeviceIdentities {
  const std::int64_t* sample_T;
  const std::int32_t* position_T;

  explicit DeviceIdentities(const RowIdentities& rows)
      : sample_T(rows.sample_T ? rows.sample_T.data<std::int64_t>() : nullptr),
        position_T(rows.position_T ? rows.position_T.data<std::int32_t>() : nullptr) {}
};

/// The random bytes of this thread's eight channels of four rows: channel i has byte i % 4 of word i / 4.
struct DropoutBytes {
  std::uint32_t words[kRowsAtOnce][2];

  __device__ FloatVector apply(const DeviceDropout& dropout, const FloatVector& values, int row) const {
    FloatVector result;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) result[i] = dropout.apply(values[i], words[row][i / 4], i % 4);
    return result;
  }
};

/// Two neighbouring threads share the sixteen channels of a random number: one draws for the first two rows,
/// the other for the last two, and each hands the other its half.
__device__ inline DropoutBytes draw_dropout(const DeviceDropout& dropout, const DeviceIdentities& rows,
                                            RowRange range) {
  static_assert(kRowsAtOnce == 4 && kDropoutGroup == 2 * kVectorWidth);
  const bool is_odd = threadIdx.x % 2 != 0;
  DropoutBytes bytes;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int64_t row = min(range.first + (is_odd ? 2 : 0) + i, range.end - 1);
    const base::PhiloxCounter drawn =
        dropout.draw(static_cast<std::uint64_t>(rows.sample_T[row]),
                     static_cast<std::uint32_t>(rows.position_T[row]), threadIdx.x / 2);
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const std::uint32_t kept = is_odd ? drawn[2 + word] : drawn[word];
      const std::uint32_t sent = is_odd ? drawn[word] : drawn[2 + word];
      const std::uint32_t received = __shfl_xor_sync(kAllLanes, sent, 1);
      bytes.words[i][word] = is_odd ? received : kept;
      bytes.words[i + 2][word] = is_odd ? kept : received;
    }
  }
  return bytes;
}

/// Whether element i of this thread's vector lies in the row.
template <bool kIsAligned>
__device__ inline bool is_inside(int column, int i, int width) {
  return (kIsAligned ? column : column + i) < width;
}

/// Mean and 1 / sqrt(variance + epsilon) of four rows.
struct RowMoments {
  float mean[kRowsAtOnce];
  float inverse_deviation[kRowsAtOnce];
};

template <bool kIsAligned>
__device__ inline RowMoments moments_of_rows(const FloatVector (&z)[kRowsAtOnce], int column, int width,
                                             float epsilon) {
  __shared__ BlockSums<kRowsAtOnce> sums, sums_of_squares;
  const float inverse_width = 1.0F / static_cast<float>(width);
  RowMoments moments;
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    moments.mean[r] = 0;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) moments.mean[r] += z[r][i];
  }
  block_sums(moments.mean, sums);
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    moments.mean[r] *= inverse_width;
    moments.inverse_deviation[r] = 0;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) {
      const float difference = is_inside<kIsAligned>(column, i, width) ? z[r][i] - moments.mean[r] : 0.0F;
      moments.inverse_deviation[r] += difference * difference;
    }
  }
  block_sums(moments.inverse_deviation, sums_of_squares);
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    moments.inverse_deviation[r] = rsqrtf(moments.inverse_deviation[r] * inverse_width + epsilon);
  }
  return moments;
}

/// gamma (z - mean) / deviation + beta of row r.
__device__ inline FloatVector normalised(const FloatVector& z, const RowMoments& moments, int r,
                                         const FloatVector& gamma, const FloatVector& beta) {
  FloatVector y;
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i) {
    y[i] = (z[i] - moments.mean[r]) * moments.inverse_deviation[r] * gamma[i] + beta[i];
  }
  return y;
}

/// Writes the moments of the rows that exist, by one thread of the block.
__device__ inline void store_moments(const RowMoments& moments, RowRange range, float* mean_T,
                                     float* inverse_deviation_T) {
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    if (range.first + r >= range.end) return;
    if (mean_T != nullptr) mean_T[range.first + r] = moments.mean[r];
    if (inverse_deviation_T != nullptr) inverse_deviation_T[range.first + r] = moments.inverse_deviation[r];
  }
}

/// Calls `launch` with the kernel's variant for these rows: whether they are aligned, and the most threads
/// that a block may have.
template <typename Launch>
void for_row_variant(bool is_aligned, int num_threads, Launch launch) {
  if (!is_aligned) return launch(std::false_type(), std::integral_constant<int, kWideThreads>());
  if (num_threads > kNarrowThreads)
    return launch(std::true_type(), std::integral_constant<int, kWideThreads>());
  launch(std::true_type(), std::integral_constant<int, kNarrowThreads>());
}

}  // namespace plenum::kernels::cuda
