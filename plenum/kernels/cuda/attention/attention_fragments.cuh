#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/kernels/cuda/attention/attention_math.cuh"
#include "plenum/kernels/cuda/device/warpgroup.cuh"
#include "plenum/kernels/cuda/device/wgmma.cuh"

namespace plenum::kernels::cuda {

// Rows of 64 bf16 between the registers of a warpgroup and memory. A thread's two rows of an accumulator or
// operand are those of its quad (see wgmma.cuh); in memory a row is eight chunks of 16 bytes.

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

__device__ inline FragmentRows fragment_rows(int thread = static_cast<int>(threadIdx.x)) {
  const int lane = thread % 32;
  const int row = 16 * warp_of_group(thread) + lane / 4;
  return {lane % 4, {row, row + 8}};
}

/// Writes an operand A to a tile in shared memory as the copy engine would lay it down. Lane l of a warp
/// names the row l % 16 and the left or right 8 of 16 columns; the four 8 x 8 matrices that these are hold
/// the four words of a step.
__device__ inline void store_operand(std::uint32_t tile_address, const RegisterOperand& a,
                                     int thread = static_cast<int>(threadIdx.x)) {
  const int lane = thread % 32;
  const int row = 16 * warp_of_group(thread) + lane % 16;
  const std::uint32_t own = tile_address + 128 * row + 16 * ((lane / 16) ^ (row % 8));
#pragma unroll
  for (int k = 0; k < 4; ++k)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0, %1, %2, %3};" ::"r"(a[k][0]),
                 "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "r"(own ^ (32 * k))
                 : "memory");
}

/// Copies 16 bytes from shared to device memory where `exists`, without a branch, behind which the compiler
/// would wait for each copy by itself.
__device__ inline void copy_chunk(std::uint32_t from, __nv_bfloat16* to, bool exists) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 x, y, z, w;\nsetp.ne.b32 p, %2, 0;\n"
      "ld.shared.v4.b32 {x, y, z, w}, [%0];\n"
      "@p st.global.v4.b32 [%1], {x, y, z, w};\n}\n" ::"r"(from),
      "l"(to), "r"(static_cast<int>(exists))
      : "memory");
}

/// Writes an accumulator as bf16, row i of the thread multiplied by scale[i], to rows of device memory of
/// which num_rows exist. It goes through a tile in shared memory, of which each warp uses its own 16 rows, so
/// that whole rows are written.
__device__ inline void store_rows(const Accumulator& d, const float (&scale)[2], unsigned char* through,
                                  __nv_bfloat16* out, std::int64_t stride, int num_rows,
                                  int thread = static_cast<int>(threadIdx.x)) {
  RegisterOperand words;
#pragma unroll
  for (int i = 0; i < 16; ++i)
    words[i / 4][i % 4] = pack(d[2 * i] * scale[i % 2], d[2 * i + 1] * scale[i % 2]);
  store_operand(shared_address(through), words, thread);
  __syncwarp();
  // A lane has every fourth row; four rows on, the bit of 4 in a chunk's place changes.
  const int lane = thread % 32;
  const int chunk = lane % 8;
  const int first = 16 * warp_of_group(thread) + lane / 8;
  const std::uint32_t own = shared_address(through) + 128 * first + 16 * (chunk ^ (lane / 8));
  __nv_bfloat16* const to = out + first * stride + 8 * chunk;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    copy_chunk((own ^ (64 * (i % 2))) + 4 * 128 * i, to + 4 * i * stride, first + 4 * i < num_rows);
  __syncwarp();
}

}  // namespace plenum::kernels::cuda
