#pragma once

#include <cstdint>

#include <cuda.h>

namespace plenum::kernels::cuda {

// A warp's share of 64 columns of an accumulator of wgmma: 16 rows of 64 bf16 in shared memory, as the copy
// engine has them with its 128-byte swizzle. A warp moves its boxes by itself: no barrier of a block is
// needed.

inline constexpr int kWarpBoxRows = 16;
inline constexpr int kWarpBoxBytes = 2048;

__device__ inline float half_of(std::uint32_t word, int half) {
  return __uint_as_float(half == 0 ? word << 16 : word & 0xFFFF0000U);
}

/// Where a lane's 16 bytes of the quarter 0 of a box lie: eight lanes name the rows of one 8 x 8 matrix, of
/// which a quarter (16 columns) has four. Quarter q lies at this, exclusive or 32 q.
__device__ inline std::uint32_t box_offset_of_lane() {
  const std::uint32_t lane = threadIdx.x % 32;
  return lane % 16 * 128 + (((lane / 16) ^ (lane % 8)) << 4);
}

/// Writes a quarter: word i is what operand A of wgmma has as its word i.
__device__ inline void put_quarter(std::uint32_t box, std::uint32_t offset_of_lane, int quarter,
                                   const std::uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   box + (offset_of_lane ^ (32 * quarter))),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

__device__ inline void get_quarter(std::uint32_t box, std::uint32_t offset_of_lane, int quarter,
                                   std::uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(box + (offset_of_lane ^ (32 * quarter)))
               : "memory");
}

/// Starts the copy of a box to a matrix; rows and columns beyond it are left out.
__device__ inline void store_box(const CUtensorMap& map, std::uint32_t box, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(column), "r"(row), "r"(box)
               : "memory");
}

/// Closes the group of copies that this thread has started since the last one.
__device__ inline void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until all but the newest kPending groups have been read from shared memory.
template <int kPending>
__device__ inline void wait_until_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

}  // namespace plenum::kernels::cuda
