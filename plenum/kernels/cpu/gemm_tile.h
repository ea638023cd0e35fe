#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The innermost part of a matrix product: one tile of C in registers. For sources of kernels/cpu only, which
// are compiled for the machine's instruction set.

namespace plenum::kernels::cpu {

#if defined(__AVX512F__)
inline constexpr std::int64_t kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr std::int64_t kRegisterBytes = 32;
#else
inline constexpr std::int64_t kRegisterBytes = 16;
#endif

using Register [[gnu::vector_size(kRegisterBytes)]] = float;
using UnalignedRegister [[gnu::vector_size(kRegisterBytes), gnu::aligned(4), gnu::may_alias]] = float;
inline constexpr std::int64_t kRegisterFloats = kRegisterBytes / static_cast<std::int64_t>(sizeof(float));

/// A tile of C is kTileRows x kTileRegisters registers. With AVX-512, 24 of the 32 registers hold sums, so
/// that fused multiply-adds, whose result takes four cycles and of which two begin in each, never wait; the
/// others hold a row of B and an element of A. The other instruction sets have 16 registers.
inline constexpr std::int64_t kTileRows = kRegisterBytes == 64 ? 8 : 6;
inline constexpr std::int64_t kTileRegisters = kRegisterBytes == 64 ? 3 : 2;
inline constexpr std::int64_t kTileColumns = kTileRegisters * kRegisterFloats;

/// Where a tile's sums go.
struct TileTarget {
  float* c = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;     ///< at most kTileRows
  std::int64_t columns = 0;  ///< within the tile's registers, more than all but the last of them
  float alpha = 1;
  bool is_added = false;
};

/// A whole tile as it left the registers, on its way to a target that takes only part of it.
struct TileSums {
  alignas(kRegisterBytes) std::array<float, kTileRows * kTileColumns> values;
};

/// Stores the part of a tile of `width` columns that lies within C.
inline void store_partial_tile(const TileSums& sums, std::int64_t width, const TileTarget& target) {
  for (std::int64_t i = 0; i < target.rows; ++i) {
    const float* from = sums.values.data() + i * width;
    float* to = target.c + i * target.stride;
    for (std::int64_t j = 0; j < target.columns; ++j) {
      to[j] = target.is_added ? to[j] + target.alpha * from[j] : target.alpha * from[j];
    }
  }
}

/// Computes a tile of `kRegisters` registers width: the sums over `depth` of a[row][kStep * k] b[k][column].
/// `a` has a pointer per row; rows that do not exist repeat one that does and are not stored. `b` is packed:
/// kRegisters registers per k.
template <std::int64_t kRegisters, std::int64_t kStep>
[[gnu::noinline]] void compute_tile(const std::array<const float*, kTileRows>& a, const float* b,
                                    std::int64_t depth, const TileTarget& target) {
  Register sums[kTileRows][kRegisters] = {};
  const float* rows[kTileRows];
  for (std::int64_t i = 0; i < kTileRows; ++i) rows[i] = a[i];
  for (std::int64_t k = 0; k < depth; ++k) {
    Register b_row[kRegisters];
    for (std::int64_t j = 0; j < kRegisters; ++j) {
      b_row[j] = *reinterpret_cast<const Register*>(b + (k * kRegisters + j) * kRegisterFloats);
    }
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const float element = rows[i][k * kStep];
      for (std::int64_t j = 0; j < kRegisters; ++j) sums[i][j] += element * b_row[j];
    }
  }
  if (target.rows < kTileRows || target.columns < kRegisters * kRegisterFloats) {
    TileSums whole;
    std::memcpy(&whole, sums, sizeof(sums));
    return store_partial_tile(whole, kRegisters * kRegisterFloats, target);
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
    for (std::int64_t j = 0; j < kRegisters; ++j) {
      UnalignedRegister* to =
          reinterpret_cast<UnalignedRegister*>(target.c + i * target.stride + j * kRegisterFloats);
      *to = target.is_added ? *to + target.alpha * sums[i][j] : target.alpha * sums[i][j];
    }
  }
}

}  // namespace plenum::kernels::cpu
