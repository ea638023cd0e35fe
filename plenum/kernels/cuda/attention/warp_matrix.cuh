#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention/attention_math.cuh"
#include "plenum/kernels/cuda/device/async_copy.cuh"

namespace plenum::kernels::cuda {

// What one warp does with bf16 matrices in shared memory on sm_80 and later: asynchronous copies in,
// fragments out by ldmatrix, products by mma.sync.m16n8k16 with fp32 sums.
//
// With g = lane / 4 and t = lane % 4, a thread holds of a product D[16, 8] += A[16, 16] B[16, 8]
//   D: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)                                  4 floats
//   A: (g, 2t..), (g+8, 2t..), (g, 2t+8..), (g+8, 2t+8..)      4 registers of two neighbours along the depth
//   B: (2t.., g), (2t+8.., g)                                  2 registers of two neighbours along the depth
// so that the sums of two neighbouring products, rounded to bf16, are an A of the next product (see
// as_left_operand): scores never travel through shared memory.

/// A matrix of rows of `kWidth` bf16 in shared memory, in chunks of 16 bytes. Chunk c of row r lies at c ^ (r
/// % 8): the eight rows that an ldmatrix reads at one c then lie in different banks. The matrix must be
/// aligned to the bytes of a row, at most 256.
template <int kWidth>
struct SharedRows {
  static constexpr int kChunks = kWidth / 8;
  static constexpr int kRowBytes = kWidth * 2;
  static_assert(kWidth == 64 || kWidth == 128);

  static __device__ int offset_bytes(int row, int chunk) {
    return row * kRowBytes + ((chunk ^ (row & 7)) << 4);
  }

  /// Where a lane's row begins for an operand A from rows [16, kWidth], or, with ldmatrix's transposition,
  /// for an operand B whose depth runs along 16 rows. Depth 16 s (or columns 16 s) further on is `^ (s <<
  /// 5)`.
  static __device__ int along_rows(int lane) { return offset_bytes(lane & 15, lane >> 4); }

  /// The same for an operand B whose depth runs along the width: 16 rows are 16 columns of the product.
  static __device__ int along_width(int lane) {
    return offset_bytes((lane & 7) | ((lane >> 1) & 8), (lane >> 3) & 1);
  }
};

/// Copies kRows rows of which the first `num_real` exist, the others become zeros, with all kThreads threads.
template <int kRows, int kWidth, int kThreads>
__device__ inline void copy_rows_async(std::uint32_t to, const __nv_bfloat16* from, int row_stride,
                                       int num_real) {
  using Rows = SharedRows<kWidth>;
  constexpr int kRowsAtOnce = kThreads / Rows::kChunks;
  static_assert(kRows % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0);
  const int chunk = static_cast<int>(threadIdx.x) % Rows::kChunks;
  const int row = static_cast<int>(threadIdx.x) / Rows::kChunks;
  from += std::int64_t{row} * row_stride + chunk * 8;
  to += Rows::offset_bytes(row, chunk);
#pragma unroll
  for (int i = 0; i < kRows; i += kRowsAtOnce) {
    copy_async<16>(to + i * Rows::kRowBytes, from, row + i < num_real);
    from += std::int64_t{kRowsAtOnce} * row_stride;
  }
}

__device__ inline void load_matrices(std::uint32_t (&to)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

__device__ inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Columns 16 s to 16 s + 15 of sums as the operand A of a product over these columns.
__device__ inline void as_left_operand(std::uint32_t (&a)[4], const float (&left)[4],
                                       const float (&right)[4]) {
  a[0] = pack(left[0], left[1]);
  a[1] = pack(left[2], left[3]);
  a[2] = pack(right[0], right[1]);
  a[3] = pack(right[2], right[3]);
}

/// The sums of 16 kGroups rows and kColumns columns that a warp holds.
template <int kGroups, int kColumns>
struct Sums {
  float of[kGroups][kColumns / 8][4] = {};
};

/// sums[rows, columns] += P[rows, depth] B[depth, columns]. P are sums of an earlier product, rounded to
/// bf16; B lies in shared memory, `b` is the lane's address along its rows.
template <int kGroups, int kDepth, int kColumns>
__device__ inline void multiply_sums(Sums<kGroups, kColumns>& sums, const Sums<kGroups, kDepth>& p,
                                     std::uint32_t b) {
#pragma unroll
  for (int s = 0; s < kDepth / 16; ++s) {
    std::uint32_t left[kGroups][4];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) as_left_operand(left[i], p.of[i][2 * s], p.of[i][2 * s + 1]);
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      std::uint32_t right[4];
      load_matrices_transposed(right, (b ^ (n << 5)) + s * 16 * SharedRows<kColumns>::kRowBytes);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        multiply_add(sums.of[i][2 * n], left[i], right[0], right[1]);
        multiply_add(sums.of[i][2 * n + 1], left[i], right[2], right[3]);
      }
    }
  }
}

/// Scales sums by a factor and writes them as bf16 to rows of global memory, of which the first `num_real`
/// exist. They go through shared memory that belongs to this warp, so that whole rows are written.
template <int kGroups, int kWidth>
__device__ inline void store_rows(const Sums<kGroups, kWidth>& sums, const float (&factors)[kGroups][2],
                                  std::byte* through, __nv_bfloat16* to, std::int64_t row_stride,
                                  int num_real) {
  using Rows = SharedRows<kWidth>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * i + 8 * half + lane / 4;
        *reinterpret_cast<std::uint32_t*>(through + Rows::offset_bytes(row, n) + lane % 4 * 4) =
            pack(sums.of[i][n][2 * half] * factors[i][half], sums.of[i][n][2 * half + 1] * factors[i][half]);
      }
    }
  }
  __syncwarp();
  constexpr int kRowsAtOnce = 32 / Rows::kChunks;
  const int chunk = lane % Rows::kChunks;
#pragma unroll
  for (int i = 0; i < 16 * kGroups / kRowsAtOnce; ++i) {
    const int row = lane / Rows::kChunks + i * kRowsAtOnce;
    if (row < num_real) {
      *reinterpret_cast<uint4*>(to + row * row_stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(through + Rows::offset_bytes(row, chunk));
    }
  }
}

}  // namespace plenum::kernels::cuda
