#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/kernels/cpu/dropout.h"
#include "plenum/kernels/cpu/gemm.h"

namespace plenum::kernels::cpu {

/// A sequence's queries, cut into blocks of nearly equal size whose scores fit the second-level cache. All
/// keys pass by each block, so large blocks pay.
struct QueryBlocks {
  static constexpr std::int64_t kMostRows = 258;
  static constexpr std::int64_t kUnit = 6;  // a product works on six rows at a time

  std::int64_t rows = 0;   ///< of each block but the last
  std::int64_t count = 0;  ///< of blocks

  explicit QueryBlocks(std::int64_t length) {
    const std::int64_t fewest = (length + kMostRows - 1) / kMostRows;
    const std::int64_t even = (length + fewest - 1) / fewest;
    rows = (even + kUnit - 1) / kUnit * kUnit;
    count = (length + rows - 1) / rows;
  }
};

/// What a thread needs for a block of queries: scores, and in backward their gradients, each with rows that
/// are whole groups of dropout's channels, and the random bytes of as many.
class AttentionScratch {
 public:
  AttentionScratch(std::span<std::byte> memory, std::int64_t length)
      : stride_(stride_for(length)), memory_(memory) {}

  static std::size_t num_bytes(std::int64_t length) {
    const std::int64_t stride = stride_for(length);
    return 2 * matrix_bytes(stride) + row_values_bytes() + random_bytes(stride) + gemm_scratch_bytes();
  }

  /// Of the rows of everything here.
  std::int64_t stride() const { return stride_; }
  float* weights() const { return floats(0); }                             ///< [rows, stride]
  float* gradients() const { return floats(matrix_bytes(stride_)); }       ///< [rows, stride]
  float* row_values() const { return floats(2 * matrix_bytes(stride_)); }  ///< [rows]
  std::uint8_t* bytes() const {                                            ///< [rows, stride]
    return reinterpret_cast<std::uint8_t*>(row_values()) + row_values_bytes();
  }
  std::span<std::byte> gemm() const {
    return memory_.subspan(2 * matrix_bytes(stride_) + row_values_bytes() + random_bytes(stride_));
  }

 private:
  static constexpr std::int64_t stride_for(std::int64_t length) {
    return (length + kDropoutGroup - 1) / kDropoutGroup * kDropoutGroup;
  }
  static constexpr std::size_t matrix_bytes(std::int64_t stride) {
    return static_cast<std::size_t>(QueryBlocks::kMostRows * stride) * sizeof(float);
  }
  static constexpr std::size_t row_values_bytes() {
    return (QueryBlocks::kMostRows * sizeof(float) + 63) / 64 * 64;
  }
  static constexpr std::size_t random_bytes(std::int64_t stride) {
    return dropout_buffer_bytes(QueryBlocks::kMostRows * stride / kDropoutGroup);
  }
  float* floats(std::size_t offset) const { return reinterpret_cast<float*>(memory_.data() + offset); }

  std::int64_t stride_;
  std::span<std::byte> memory_;
};

}  // namespace plenum::kernels::cpu
