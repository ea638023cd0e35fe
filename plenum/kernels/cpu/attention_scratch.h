#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/kernels/cpu/dropout.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/gemm_tile.h"
#include "plenum/workspace/attention.h"

namespace plenum::kernels::cpu {

/// A sequence's queries, cut into blocks of nearly equal size whose scores fit the second-level cache. All
/// keys pass by each block, so large blocks pay; a product works on kTileRows of its rows at a time.
struct QueryBlocks {
  static constexpr std::int64_t kMostRows = (256 + kTileRows - 1) / kTileRows * kTileRows;
  static_assert(kMostRows <= workspace::kMostQueryRows);

  std::int64_t rows = 0;   ///< of each block but the last
  std::int64_t count = 0;  ///< of blocks

  explicit QueryBlocks(std::int64_t length) {
    const std::int64_t fewest = (length + kMostRows - 1) / kMostRows;
    const std::int64_t even = (length + fewest - 1) / fewest;
    rows = (even + kTileRows - 1) / kTileRows * kTileRows;
    count = (length + rows - 1) / rows;
  }
};

/// What a thread needs for a block of queries.
class AttentionScratch {
 public:
  AttentionScratch(std::span<std::byte> memory, std::int64_t length)
      : layout_(length, QueryBlocks::kMostRows), memory_(memory) {}

  /// The length, rounded up to whole groups of dropout's channels.
  std::int64_t columns() const { return layout_.columns; }
  /// Between rows of weights and gradients.
  std::int64_t stride() const { return layout_.stride; }

  float* weights() const { return floats(0); }                      ///< [rows, stride]
  float* gradients() const { return floats(layout_.gradients); }    ///< [rows, stride]
  float* row_values() const { return floats(layout_.row_values); }  ///< [rows]
  std::uint8_t* random_bytes() const {                              ///< [rows, columns]
    return reinterpret_cast<std::uint8_t*>(memory_.data() + layout_.random_bytes);
  }
  std::span<std::byte> gemm() const { return memory_.subspan(layout_.gemm); }

 private:
  float* floats(std::size_t offset) const { return reinterpret_cast<float*>(memory_.data() + offset); }

  workspace::CpuAttentionScratch layout_;
  std::span<std::byte> memory_;
};

}  // namespace plenum::kernels::cpu
