#pragma once

#include <cstdint>

#include <cuda_bf16.h>

namespace plenum::kernels::cuda {

// Eight neighbouring elements at once: 16 bytes of bf16, the widest access a thread has. Rows whose width is
// no multiple of eight do not begin at such an address; they are read and written element by element, by the
// same code with kIsAligned = false, and lanes beyond the width hold zeros.

inline constexpr int kVectorWidth = 8;

/// Eight bf16 as they lie in memory: element i is half i % 2 of word i / 2.
struct PackedVector {
  uint4 words;
};

struct FloatVector {
  float at[kVectorWidth];

  __device__ float& operator[](int i) { return at[i]; }
  __device__ float operator[](int i) const { return at[i]; }
};

__device__ inline FloatVector unpack(PackedVector packed) {
  const std::uint32_t words[4] = {packed.words.x, packed.words.y, packed.words.z, packed.words.w};
  FloatVector values;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
  }
  return values;
}

/// Rounds to the nearest, of two equally near to the even one.
__device__ inline PackedVector pack(const FloatVector& values) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
    words[i] = __bfloat16_as_ushort(pair.x) | std::uint32_t{__bfloat16_as_ushort(pair.y)} << 16;
  }
  return {make_uint4(words[0], words[1], words[2], words[3])};
}

__device__ inline FloatVector sum_of(const FloatVector& a, const FloatVector& b) {
  FloatVector sum;
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i) sum[i] = a[i] + b[i];
  return sum;
}

/// What a value becomes by being kept as bf16.
__device__ inline FloatVector rounded(const FloatVector& values) {
  return unpack(pack(values));
}

/// Reads `row[column ... column + 7]` of a row of `width` elements.
template <bool kIsAligned>
__device__ inline PackedVector load_packed(const __nv_bfloat16* row, int column, int width) {
  if constexpr (kIsAligned) {
    if (column >= width) return {};
    return {*reinterpret_cast<const uint4*>(row + column)};
  } else {
    std::uint32_t words[4] = {};
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) {
      if (column + i < width)
        words[i / 2] |= std::uint32_t{__bfloat16_as_ushort(row[column + i])} << 16 * (i % 2);
    }
    return {make_uint4(words[0], words[1], words[2], words[3])};
  }
}

template <bool kIsAligned>
__device__ inline FloatVector load_vector(const __nv_bfloat16* row, int column, int width) {
  return unpack(load_packed<kIsAligned>(row, column, width));
}

template <bool kIsAligned>
__device__ inline FloatVector load_vector(const float* row, int column, int width) {
  FloatVector values{};
  if constexpr (kIsAligned) {
    if (column >= width) return values;
    const float4 low = *reinterpret_cast<const float4*>(row + column);
    const float4 high = *reinterpret_cast<const float4*>(row + column + 4);
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
  } else {
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) {
      if (column + i < width) values[i] = row[column + i];
    }
    return values;
  }
}

template <bool kIsAligned>
__device__ inline void store_packed(__nv_bfloat16* row, int column, int width, PackedVector packed) {
  if constexpr (kIsAligned) {
    if (column < width) *reinterpret_cast<uint4*>(row + column) = packed.words;
  } else {
    const std::uint32_t words[4] = {packed.words.x, packed.words.y, packed.words.z, packed.words.w};
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) {
      if (column + i < width)
        row[column + i] = __ushort_as_bfloat16(static_cast<std::uint16_t>(words[i / 2] >> 16 * (i % 2)));
    }
  }
}

template <bool kIsAligned>
__device__ inline void store_vector(__nv_bfloat16* row, int column, int width, const FloatVector& values) {
  store_packed<kIsAligned>(row, column, width, pack(values));
}

template <bool kIsAligned>
__device__ inline void store_vector(float* row, int column, int width, const FloatVector& values) {
  if constexpr (kIsAligned) {
    if (column >= width) return;
    *reinterpret_cast<float4*>(row + column) = make_float4(values[0], values[1], values[2], values[3]);
    *reinterpret_cast<float4*>(row + column + 4) = make_float4(values[4], values[5], values[6], values[7]);
  } else {
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) {
      if (column + i < width) row[column + i] = values[i];
    }
  }
}

/// Whether rows of this width in all these tensors may be accessed as vectors.
template <typename... Views>
bool are_rows_aligned(std::int64_t width, const Views&... views) {
  return width % kVectorWidth == 0 && ((reinterpret_cast<std::uintptr_t>(views.raw()) % 16 == 0) && ...);
}

}  // namespace plenum::kernels::cuda
