#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/tensor/stream.h"

namespace plenum::kernels::cpu {

/// A rectangle of a square matrix.
struct Block {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
};

/// Calls body(block, thread) for blocks that cover the lower half of an [N, N] matrix and as little above it
/// as whole strips of rows allow, the widest strips first. The cut depends on N alone.
template <typename Body>
void for_lower_blocks(const tensor::Stream& stream, std::int64_t size, Body body) {
  constexpr std::int64_t kRows = 96;  // a multiple of the rows of every tile of a product
  constexpr std::int64_t kColumns = 384;
  const std::int64_t num_strips = (size + kRows - 1) / kRows;
  const auto width_of = [&](std::int64_t strip) { return std::min(size, (strip + 1) * kRows); };
  const auto blocks_of = [&](std::int64_t strip) { return (width_of(strip) + kColumns - 1) / kColumns; };
  std::int64_t num_blocks = 0;
  for (std::int64_t strip = 0; strip < num_strips; ++strip) num_blocks += blocks_of(strip);
  stream.pool().run(static_cast<std::size_t>(num_blocks), [&](std::size_t task, std::size_t thread) {
    auto index = static_cast<std::int64_t>(task);
    std::int64_t strip = num_strips - 1;
    for (; index >= blocks_of(strip); --strip) index -= blocks_of(strip);
    const std::int64_t column = index * kColumns;
    body(Block{.row = strip * kRows,
               .rows = std::min(kRows, size - strip * kRows),
               .column = column,
               .columns = std::min(kColumns, width_of(strip) - column)},
         thread);
  });
}

}  // namespace plenum::kernels::cpu
