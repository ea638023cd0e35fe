#pragma once

#include <cstdint>
#include <type_traits>

#include "plenum/base/check.h"
#include "plenum/kernels/cuda/device/async_copy.cuh"
#include "plenum/kernels/cuda/device/dropout.cuh"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/device/vector_io.cuh"
#include "plenum/workspace/rows.h"

namespace plenum::kernels::cuda {

// How kernels over rows of width D share out their work: a thread owns eight neighbouring columns, a block
// whole rows, and it works on a few of them at once, so that each thread has several loads in flight and the
// sums of all of them cost one barrier. What belongs to a column (gamma, its gradient) stays in registers.

/// The widths of BERT get a kernel of their own, with more registers for each thread.
inline constexpr int kNarrowThreads = 128;
inline constexpr int kWideThreads = 512;
inline constexpr std::int64_t kMaxRows = std::int64_t{1} << 30;
static_assert(workspace::kMaxRowWidth == std::int64_t{kWideThreads} * kVectorWidth);

inline int threads_of_row(std::int64_t width) {
  workspace::require_row_width(width);
  const std::int64_t vectors = (width + kVectorWidth - 1) / kVectorWidth;
  return static_cast<int>((vectors + kWarpSize - 1) / kWarpSize) * kWarpSize;
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

/// This thread's columns of the rows that its block works on at once: kRows of them, less in the last tile.
template <bool kIsAligned, int kRows>
class RowTile {
 public:
  static unsigned count(std::int64_t num_rows) {
    base::check(num_rows <= kMaxRows, "the GPU takes at most {} rows at a time: {}", kMaxRows, num_rows);
    return static_cast<unsigned>((num_rows + kRows - 1) / kRows);
  }

  /// Tiles are counted from the last one to the first; beyond that they have no rows. The product before has
  /// written the last rows last, and the next one will read the first rows first: whoever goes the other way
  /// finds what was written and leaves what will be read in the second-level cache.
  __device__ RowTile(int from_end, int num_rows, int width)
      : first_(first_row(from_end, num_rows)),
        num_rows_(min(num_rows - first_, kRows)),
        column_(static_cast<int>(threadIdx.x) * kVectorWidth),
        width_(width),
        begin_(std::int64_t{first_} * width + column_),
        own_rows_(column_ < width ? num_rows_ : 0) {}

  __device__ bool exists(int r) const { return r < num_rows_; }
  __device__ int row(int r) const { return first_ + r; }
  /// One that exists, for what is read of rows that do not and then not used.
  __device__ int nearest_row(int r) const { return first_ + min(r, num_rows_ - 1); }

  /// Zeros where there is no row.
  __device__ PackedVector load(const __nv_bfloat16* x_TD, int r) const {
    const __nv_bfloat16* const x = x_TD + begin_ + r * width_;
    return r < own_rows_ ? load_packed<kIsAligned>(x, 0, num_elements()) : PackedVector{};
  }
  /// The same to shared memory, in the background where rows are aligned.
  __device__ void fetch(const __nv_bfloat16* x_TD, int r, PackedVector& to) const {
    if constexpr (kIsAligned) {
      copy_async<sizeof(PackedVector)>(shared_address(&to), x_TD + begin_ + r * width_, r < own_rows_);
    } else {
      to = load(x_TD, r);
    }
  }
  /// A row of another tensor.
  __device__ PackedVector load_entry(const __nv_bfloat16* table, std::int64_t entry) const {
    return load_packed<kIsAligned>(table + entry * width_, column_, width_);
  }
  /// Nothing where there is no row.
  __device__ void store(__nv_bfloat16* y_TD, int r, const FloatVector& values) const {
    __nv_bfloat16* const y = y_TD + begin_ + r * width_;
    const PackedVector packed = pack(values);
    if (r < own_rows_) store_packed<kIsAligned>(y, 0, num_elements(), packed);
  }
  /// What belongs to the columns.
  __device__ FloatVector load_columns(const float* x_D) const {
    return load_vector<kIsAligned>(x_D, column_, width_);
  }
  __device__ void store_columns(float* y_D, const FloatVector& values) const {
    store_vector<kIsAligned>(y_D, column_, width_, values);
  }

  /// The sum of those of the values that lie within the width.
  __device__ float sum_inside(const FloatVector& values) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) sum += kIsAligned || column_ + i < width_ ? values[i] : 0.0F;
    return !kIsAligned || column_ < width_ ? sum : 0.0F;
  }

 private:
  __device__ static int first_row(int from_end, int num_rows) {
    const int first = ((num_rows - 1) / kRows - from_end) * kRows;
    return first >= 0 ? first : num_rows;
  }
  /// From this thread's column to the end of the row; aligned rows have whole vectors.
  __device__ int num_elements() const {
    return kIsAligned ? kVectorWidth : width_ - column_;
  }

  int first_;
  int num_rows_;
  int column_;
  int width_;
  std::int64_t begin_;  ///< of this thread's vector in the first row
  int own_rows_;        ///< rows of this thread: none beyond the width
};

/// RowIdentities as kernels take them.
struct DeviceIdentities {
  const std::int64_t* sample_T;
  const std::int32_t* position_T;

  explicit DeviceIdentities(const RowIdentities& rows)
      : sample_T(rows.sample_T ? rows.sample_T.data<std::int64_t>() : nullptr),
        position_T(rows.position_T ? rows.position_T.data<std::int32_t>() : nullptr) {}
};

/// The rows that this thread draws random numbers for. Two neighbouring threads share the sixteen channels of
/// a number: one draws for the first half of the rows, the other for the second.
template <int kRows>
struct DrawnRows {
  std::uint64_t sample[kRows / 2];
  std::uint32_t position[kRows / 2];
};

template <bool kIsAligned, int kRows>
__device__ inline DrawnRows<kRows> load_drawn_rows(const DeviceIdentities& rows,
                                                   const RowTile<kIsAligned, kRows>& tile) {
  DrawnRows<kRows> drawn;
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) {
    const int row = tile.nearest_row(threadIdx.x % 2 != 0 ? kRows / 2 + i : i);
    drawn.sample[i] = static_cast<std::uint64_t>(rows.sample_T[row]);
    drawn.position[i] = static_cast<std::uint32_t>(rows.position_T[row]);
  }
  return drawn;
}

/// The random bytes of this thread's eight channels of each row: channel i has byte i % 4 of word i / 4.
template <int kRows>
struct DropoutBytes {
  std::uint32_t words[kRows][2];

  __device__ FloatVector apply(const DeviceDropout& dropout, const FloatVector& values, int r) const {
    FloatVector result;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) result[i] = dropout.apply(values[i], words[r][i / 4], i % 4);
    return result;
  }
  __device__ FloatVector apply_and_add(const DeviceDropout& dropout, const FloatVector& values, int r,
                                       const FloatVector& sums) const {
    FloatVector result;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i)
      result[i] = dropout.apply_and_add(values[i], words[r][i / 4], i % 4, sums[i]);
    return result;
  }
};

/// Draws for its own rows, and exchanges halves with its neighbour.
template <int kRows>
__device__ inline DropoutBytes<kRows> draw_dropout(const DeviceDropout& dropout,
                                                   const DrawnRows<kRows>& rows) {
  static_assert(kRows % 2 == 0 && kDropoutGroup == 2 * kVectorWidth);
  const bool is_odd = threadIdx.x % 2 != 0;
  DropoutBytes<kRows> bytes;
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) {
    const base::PhiloxCounter drawn = dropout.draw(rows.sample[i], rows.position[i], threadIdx.x / 2);
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const std::uint32_t kept = is_odd ? drawn[2 + word] : drawn[word];
      const std::uint32_t sent = is_odd ? drawn[word] : drawn[2 + word];
      const std::uint32_t received = __shfl_xor_sync(kAllLanes, sent, 1);
      bytes.words[i][word] = is_odd ? received : kept;
      bytes.words[kRows / 2 + i][word] = is_odd ? kept : received;
    }
  }
  return bytes;
}

/// Mean and 1 / sqrt(variance + epsilon) of each row.
template <int kRows>
struct RowMoments {
  float mean[kRows];
  float inverse_deviation[kRows];
};

template <int kThreads, bool kIsAligned, int kRows>
__device__ inline RowMoments<kRows> moments_of_rows(const RowTile<kIsAligned, kRows>& tile,
                                                    const FloatVector (&z)[kRows], int width, float epsilon) {
  __shared__ BlockSums<kRows> sums, sums_of_squares;
  const float inverse_width = 1.0F / static_cast<float>(width);
  RowMoments<kRows> moments;
#pragma unroll
  for (int r = 0; r < kRows; ++r) moments.mean[r] = tile.sum_inside(z[r]);
  block_sums<kThreads>(moments.mean, sums);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    moments.mean[r] *= inverse_width;
    FloatVector squares;
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) {
      const float difference = z[r][i] - moments.mean[r];
      squares[i] = difference * difference;
    }
    moments.inverse_deviation[r] = tile.sum_inside(squares);
  }
  block_sums<kThreads>(moments.inverse_deviation, sums_of_squares);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    moments.inverse_deviation[r] = rsqrtf(moments.inverse_deviation[r] * inverse_width + epsilon);
  }
  return moments;
}

/// zhat = (z - mean) / deviation, by one operation. That the product with the mean is rounded costs as many
/// bits as the mean is deviations away, of the 16 that fp32 has beyond bf16.
__device__ inline float normalised(float z, float mean, float inverse_deviation) {
  return fmaf(z, inverse_deviation, -mean * inverse_deviation);
}

/// gamma zhat + beta of row r.
template <int kRows>
__device__ inline FloatVector normalised(const FloatVector& z, const RowMoments<kRows>& moments, int r,
                                         const FloatVector& gamma, const FloatVector& beta) {
  FloatVector y;
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i) {
    y[i] = fmaf(normalised(z[i], moments.mean[r], moments.inverse_deviation[r]), gamma[i], beta[i]);
  }
  return y;
}

/// Writes the moments of the rows that exist, by one thread of the block. Either may be null.
template <bool kIsAligned, int kRows>
__device__ inline void store_moments(const RowTile<kIsAligned, kRows>& tile, const RowMoments<kRows>& moments,
                                     float* mean_T, float* inverse_deviation_T) {
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (!tile.exists(r)) continue;
    if (mean_T != nullptr) mean_T[tile.row(r)] = moments.mean[r];
    if (inverse_deviation_T != nullptr) inverse_deviation_T[tile.row(r)] = moments.inverse_deviation[r];
  }
}

}  // namespace plenum::kernels::cuda
