#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/tensor/device.h"

namespace plenum::workspace {

// Of what works row by row: dropout, layer norm, embedding.

/// Channels that share one call of the random function, a byte each.
inline constexpr std::int64_t kDropoutGroup = 16;
/// Size of the buffer that the CPU draws the random bytes of so many groups into: 16 at a time.
constexpr std::size_t dropout_buffer_bytes(std::int64_t num_groups) {
  return static_cast<std::size_t>((num_groups + 15) / 16 * 16 * kDropoutGroup);
}
/// Of a row of this width.
constexpr std::size_t row_dropout_bytes(std::int64_t width) {
  return dropout_buffer_bytes((width + kDropoutGroup - 1) / kDropoutGroup);
}

/// Scratch that dropout by itself needs for rows of this width, on the CPU each thread. Throws UserError
/// where rows are too wide for the GPU.
std::size_t dropout_rows_scratch_bytes(tensor::Device device, std::int64_t width);

/// What layer norm sums over all rows: dy zhat for dgamma, dy for dbeta, and dx for db where it is asked for.
inline constexpr std::size_t kMaxLayerNormSums = 3;
/// Parts of all rows that the CPU sums apart, at most: enough for threads to share evenly, and for few sums.
inline constexpr std::int64_t kMostLayerNormBlocks = 64;
/// Tiles of rows are dealt to at most this many blocks of the GPU, whose sums over rows are added in order
/// afterwards. An H200 works on all of them at the same time: it has room for 528. More would cost more
/// memory traffic (4 bytes for each block, column and sum, written and read) than they bring.
inline constexpr unsigned kMaxLayerNormParts = 512;
/// Scratch that layer norm's ops need for rows of this width, on the CPU each thread. Throws UserError where
/// rows are too wide for the GPU.
std::size_t layer_norm_scratch_bytes(tensor::Device device, std::int64_t width);

/// Columns that a block of a kernel over rows can take on the GPU: 512 threads with eight each.
inline constexpr std::int64_t kMaxRowWidth = 4096;
/// Throws UserError where rows are too wide for the GPU's kernels over rows.
void require_row_width(std::int64_t width);

inline constexpr std::size_t kNumTables = 3;  ///< that an embedding has: words, positions, segments
/// On the GPU the list of rows, sorted by the table's entry, is cut into pieces of this length, a block each.
/// Most groups lie in one piece and are added to their entry at once. A group that goes over a cut leaves a
/// sum in each piece: at the head of a piece if it began before, at its tail if it goes on behind. The piece
/// in which it began adds them up afterwards.
inline constexpr int kTablePieceRows = 64;
inline constexpr std::size_t kOpenTableGroupBytes = 8;  ///< what a piece says of a group that goes on behind
constexpr std::int64_t num_table_pieces(std::int64_t num_rows) {
  return (num_rows + kTablePieceRows - 1) / kTablePieceRows;
}
/// Scratch that the embedding's ops need for this many rows, on the CPU each thread.
std::size_t embedding_scratch_bytes(tensor::Device device, std::int64_t num_rows, std::int64_t width);

}  // namespace plenum::workspace
