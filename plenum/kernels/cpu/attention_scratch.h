#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/kernels/cpu/dropout.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/gemm_tile.h"

namespace plenum::kernels::cpu {

/// A sequence's queries, cut into blocks of nearly equal size whose scores fit the second-level cache. All
/// keys pass by each block, so large blocks pay; a product works on kTileRows of its rows at a time.
struct QueryBlocks {
  static constexpr std::int64_t kMostRows = (256 + kTileRows - 1) / kTileRows * kTileRows;

  std::int64_t rows = 0;   ///< of each block but the last
  std::int64_t count = 0;  ///< of blocks

  explicit QueryBlocks(std::int64_t length) {
    const std::int64_t fewest = (length + kMostRows - 1) / kMostRows;
    const std::int64_t even = (length + fewest - 1) / fewest;
    rows = (even + kTileRows - 1) / kTileRows * kTileRows;
    count = (length + rows - 1) / rows;
  }
};

/// What a thread needs for a block of queries: scores, and in backward their gradients, in rows that end with
/// a whole vector, and the random bytes of as many.
class AttentionScratch {
 public:
  AttentionScratch(std::span<std::byte> memory, std::int64_t length)
      : columns_(columns_for(length)), memory_(memory) {}

  static std::size_t num_bytes(std::int64_t length) {
    return bytes_before_gemm(columns_for(length)) + gemm_scratch_bytes();
  }

  /// The length, rounded up to whole groups of dropout's channels.
  std::int64_t columns() const { return columns_; }
  /// Between rows of weights and gradients.
  std::int64_t stride() const { return stride_for(columns_); }

  float* weights() const { return floats(0); }                              ///< [rows, stride]
  float* gradients() const { return floats(matrix_bytes(columns_)); }       ///< [rows, stride]
  float* row_values() const { return floats(2 * matrix_bytes(columns_)); }  ///< [rows]
  std::uint8_t* random_bytes() const {                                      ///< [rows, columns]
    return reinterpret_cast<std::uint8_t*>(row_values()) + row_values_bytes();
  }
  std::span<std::byte> gemm() const { return memory_.subspan(bytes_before_gemm(columns_)); }

 private:
  static constexpr std::int64_t columns_for(std::int64_t length) {
    return (length + kDropoutGroup - 1) / kDropoutGroup * kDropoutGroup;
  }
  // An odd number of cache lines: columns of a matrix spread over all sets of the first-level cache.
  static constexpr std::int64_t stride_for(std::int64_t columns) {
    return (columns / kDropoutGroup | 1) * kDropoutGroup;
  }
  static constexpr std::size_t matrix_bytes(std::int64_t columns) {
    return static_cast<std::size_t>(QueryBlocks::kMostRows * stride_for(columns)) * sizeof(float);
  }
  static constexpr std::size_t row_values_bytes() {
    return (QueryBlocks::kMostRows * sizeof(float) + 63) / 64 * 64;
  }
  static constexpr std::size_t bytes_before_gemm(std::int64_t columns) {
    return 2 * matrix_bytes(columns) + row_values_bytes() +
           dropout_buffer_bytes(QueryBlocks::kMostRows * columns / kDropoutGroup);
  }
  float* floats(std::size_t offset) const { return reinterpret_cast<float*>(memory_.data() + offset); }

  std::int64_t columns_;
  std::span<std::byte> memory_;
};

}  // namespace plenum::kernels::cpu
