#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/device/shared_address.cuh"

namespace plenum::kernels::cuda {

// The tensor cores of Hopper: products of 64 x 64 x 64 in bf16, summed in fp32, by a warpgroup (four warps,
// the first of them at a multiple of four). All operands here are tiles of 64 rows of 64 bf16 (128 bytes), as
// the copy engine lays them down with its 128-byte swizzle: within 8 rows (1,024 bytes) the 16-byte chunk c
// of row r lies at chunk c ^ r. Tiles are aligned to 1,024 bytes.
//
// Accumulator (64 x 64): thread t of the warpgroup holds float d[32]. With w = t / 32 and l = t % 32, d[i] is
//     row 16 w + l / 4 + 8 (i / 2 % 2),   column 8 (i / 4) + 2 (l % 4) + i % 2,
// so each thread has two rows, and the four threads of a quad share them.
//
// Operand A in registers (64 x 16 per instruction): four words of two bf16: (row, columns 2 (l % 4) + 0, 1),
// the same 8 rows below, then both again 8 columns to the right. That is the order of d[8 k] ... d[8 k + 7]
// for the columns 16 k ... 16 k + 15: an accumulator, rounded to bf16 in pairs, is an operand A as it stands.

inline constexpr int kTileRows = 64;     ///< and columns
inline constexpr int kTileBytes = 8192;  ///< 64 x 64 bf16

/// An accumulator of 64 x 64.
using Accumulator = float[32];

/// A tile of 64 x 64 as operand A in registers: the words of each of the four steps of 16 columns.
using RegisterOperand = std::uint32_t[4][4];

/// How a product runs over the rows and columns of its tile B in memory.
enum class TileB {
  Transposed,  ///< D += A B^T: the sum goes along the rows of the tile ("K-major")
  Plain        ///< D += A B: the sum goes down its columns ("MN-major")
};

/// The same for a tile A in memory.
enum class TileA {
  Plain,      ///< the sum goes along its rows
  Transposed  ///< D += A^T B: down its columns
};

/// Describes a tile in shared memory. Bits 0-13: address; 16-29 and 32-45: distance of groups of 8 rows (one
/// of the two fields is unused with either direction, since the tile is one swizzle pattern wide); 62-63:
/// 128-byte swizzle. All distances in units of 16 bytes.
__device__ inline std::uint64_t describe_tile(std::uint32_t shared_address) {
  constexpr std::uint64_t kGroupOf8Rows = 1024 >> 4;
  constexpr std::uint64_t kSwizzle128 = 1;
  return (kSwizzle128 << 62) | (kGroupOf8Rows << 32) | (kGroupOf8Rows << 16) |
         ((shared_address & 0x3FFFF) >> 4);
}

/// What to add to a descriptor to go 16 on along the sum: within the rows of a tile, or down its columns.
inline constexpr std::uint64_t kStepAlongRows = 32 >> 4;
inline constexpr std::uint64_t kStepDownColumns = 16 * 128 >> 4;

/// Orders register accesses before it against the products behind it. Needed before the first product of a
/// sequence and whenever accumulators or operands in registers were written.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Closes the group of products issued since the last one.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Tells the compiler that an accumulator changes here: nothing that reads it moves up over this point.
__device__ inline void hold(Accumulator& d) {
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// Waits until all but the newest kPending groups are done.
template <int kPending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// D (+)= A B with 16 columns of A in registers.
template <TileB kB>
__device__ inline void wgmma_m64n64k16(Accumulator& d, const std::uint32_t (&a)[4], std::uint64_t b,
                                       int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(kB == TileB::Plain ? 1 : 0));
}

/// D (+)= A B with A in shared memory.
template <TileB kB, TileA kA>
__device__ inline void wgmma_m64n64k16(Accumulator& d, std::uint64_t a, std::uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, %35, %36;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(accumulate), "n"(kA == TileA::Transposed ? 1 : 0),
        "n"(kB == TileB::Plain ? 1 : 0));
}

/// Issues the product of two 64 x 64 tiles, A in registers; `accumulate` 0 overwrites D.
template <TileB kB>
__device__ inline void issue_product(Accumulator& d, const RegisterOperand& a, std::uint64_t b,
                                     int accumulate) {
  constexpr std::uint64_t kStep = kB == TileB::Plain ? kStepDownColumns : kStepAlongRows;
#pragma unroll
  for (int k = 0; k < 4; ++k) wgmma_m64n64k16<kB>(d, a[k], b + k * kStep, k > 0 ? 1 : accumulate);
}

/// The same with A in shared memory.
template <TileB kB, TileA kA = TileA::Plain>
__device__ inline void issue_product(Accumulator& d, std::uint64_t a, std::uint64_t b, int accumulate) {
  constexpr std::uint64_t kStepA = kA == TileA::Transposed ? kStepDownColumns : kStepAlongRows;
  constexpr std::uint64_t kStepB = kB == TileB::Plain ? kStepDownColumns : kStepAlongRows;
#pragma unroll
  for (int k = 0; k < 4; ++k)
    wgmma_m64n64k16<kB, kA>(d, a + k * kStepA, b + k * kStepB, k > 0 ? 1 : accumulate);
}

}  // namespace plenum::kernels::cuda
