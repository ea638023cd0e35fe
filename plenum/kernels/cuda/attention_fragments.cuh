#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention_math.cuh"
#include "plenum/kernels/cuda/wgmma.cuh"

namespace plenum::kernels::cuda {

// Rows of 64 bf16 between global memory and the registers of a warpgroup. A thread's two rows of an
// accumulator or operand are those of its quad (see wgmma.cuh); in memory a row is eight chunks of 16 bytes.
// The four threads of a quad move chunks 0-3, then 4-7, whole sectors at a time, while a fragment wants word
// q of every chunk in thread q: a 4 x 4 transpose within the quad lies between the two.

inline constexpr float kLog2OfE = 1.4426950408889634F;

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

/// Loads a tile in shared memory, laid down by the copy engine, as operand A. Lane l of a warp names the row
/// l % 16 and the left or right 8 of 16 columns; the four 8 x 8 matrices that result are the four words of a
/// step.
__device__ inline void load_operand(std::uint32_t tile_address, RegisterOperand& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = 16 * (static_cast<int>(threadIdx.x) / 32 % 4) + lane % 16;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int chunk = (2 * k + lane / 16) ^ (row % 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                 : "r"(tile_address + 128 * row + 16 * chunk)
                 : "memory");
  }
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
