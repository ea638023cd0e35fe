#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/wgmma.cuh"

namespace plenum::kernels::cuda {

// Rows of 64 bf16 between global memory and the registers of a warpgroup. A thread's two rows of an
// accumulator or operand are those of its quad (see wgmma.cuh); in memory a row is eight chunks of 16 bytes.
// The four threads of a quad move chunks 0-3, then 4-7, whole sectors at a time, while a fragment wants word
// q of every chunk in thread q: a 4 x 4 transpose within the quad lies between the two.

/// 2^x to about 2 ulp; results that are no normal numbers become zero.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Two bf16, the first in the lower half.
__device__ inline std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

__device__ inline float2 unpack(std::uint32_t word) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(word));
}

/// Rounds an accumulator to the operand A of the next product.
__device__ inline void to_operand(const Accumulator& d, RegisterOperand& a) {
#pragma unroll
  for (int i = 0; i < 16; ++i) a[i / 4][i % 4] = pack(d[2 * i], d[2 * i + 1]);
}

/// The thread's place in a tile of 64 rows.
struct FragmentRows {
  int lane_in_quad;
  int row[2];
};

__device__ inline FragmentRows fragment_rows() {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int row = 16 * warp + lane / 4;
  return {lane % 4, {row, row + 8}};
}

/// Word j of thread q becomes word q of thread j.
__device__ inline void transpose_quad(std::uint32_t (&words)[4], int lane_in_quad) {
  const bool odd = lane_in_quad & 1;
  const bool upper = lane_in_quad & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFF, odd ? words[i] : words[i + 1], 1);
    words[i] = odd ? other : words[i];
    words[i + 1] = odd ? words[i + 1] : other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFF, upper ? words[i] : words[i + 2], 2);
    words[i] = upper ? other : words[i];
    words[i + 2] = upper ? words[i + 2] : other;
  }
}

/// The thread's chunks of its two rows: chunks q and q + 4. Rows from num_rows on read as zero.
struct RowChunks {
  std::uint32_t words[2][2][4];
};

__device__ inline RowChunks load_chunks(const __nv_bfloat16* tile, std::int64_t stride, int num_rows,
                                        const FragmentRows& rows) {
  RowChunks chunks;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint4 chunk = {0, 0, 0, 0};
      if (rows.row[i] < num_rows)
        chunk = __ldg(
            reinterpret_cast<const uint4*>(tile + rows.row[i] * stride + 8 * (rows.lane_in_quad + 4 * half)));
      chunks.words[i][half][0] = chunk.x;
      chunks.words[i][half][1] = chunk.y;
      chunks.words[i][half][2] = chunk.z;
      chunks.words[i][half][3] = chunk.w;
    }
  return chunks;
}

/// Turns rows as loaded into operand A.
__device__ inline void to_operand(RowChunks& chunks, const FragmentRows& rows, RegisterOperand& a) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      transpose_quad(chunks.words[i][half], rows.lane_in_quad);
#pragma unroll
      for (int c = 0; c < 4; ++c) a[2 * half + c / 2][2 * (c % 2) + i] = chunks.words[i][half][c];
    }
}

/// Sum over each of the thread's rows of x * y, the same in the four threads of a quad.
__device__ inline void dot_rows(const RowChunks& x, const RowChunks& y, float (&sums)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const float2 a = unpack(x.words[i][w / 4][w % 4]);
      const float2 b = unpack(y.words[i][w / 4][w % 4]);
      sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
    }
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
    sums[i] = sum + __shfl_xor_sync(0xFFFFFFFF, sum, 2);
  }
}

/// Writes an accumulator as bf16, row i of the thread multiplied by scale[i], rows below num_rows only.
__device__ inline void store_rows(const Accumulator& d, const float (&scale)[2], __nv_bfloat16* tile,
                                  std::int64_t stride, int num_rows, const FragmentRows& rows) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t words[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int at = 4 * (4 * half + c) + 2 * i;
        words[c] = pack(d[at] * scale[i], d[at + 1] * scale[i]);
      }
      transpose_quad(words, rows.lane_in_quad);
      if (rows.row[i] < num_rows)
        *reinterpret_cast<uint4*>(tile + rows.row[i] * stride + 8 * (rows.lane_in_quad + 4 * half)) = {
            words[0], words[1], words[2], words[3]};
    }
}

}  // namespace plenum::kernels::cuda
