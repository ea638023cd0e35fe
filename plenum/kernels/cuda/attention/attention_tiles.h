#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plenum/workspace/attention.h"

namespace plenum::kernels::cuda {

using workspace::kAttentionTileRows;

/// A run of rows of one sequence that one thread block takes, for one head after the other. Kernels read a
/// list of them from device memory, so that a captured graph can be replayed with other sequences.
struct AttentionTile {
  std::int32_t start;     ///< first row of the sequence in the micro-batch
  std::int32_t length;    ///< rows of the sequence
  std::int32_t first;     ///< first row of the tile within its sequence
  std::int32_t sequence;  ///< index of the sequence, for the identity of its sample
};

/// A run of rows that belong to no sequence: outputs are zero there.
struct AttentionGap {
  std::int32_t start;
  std::int32_t length;
};

/// Cuts each sequence into tiles of at most `tile_rows` rows. Work of a tile is proportional to the length of
/// its sequence; the list is sorted by decreasing length (then by sequence and row), so that what is started
/// last is small and sequences of similar length are neighbours.
inline std::vector<AttentionTile> make_attention_tiles(std::span<const std::int32_t> starts,
                                                       std::span<const std::int32_t> lengths,
                                                       std::int32_t tile_rows) {
  std::vector<AttentionTile> tiles;
  for (std::size_t s = 0; s < lengths.size(); ++s)
    for (std::int32_t first = 0; first < lengths[s]; first += tile_rows)
      tiles.push_back({starts[s], lengths[s], first, static_cast<std::int32_t>(s)});
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const AttentionTile& a, const AttentionTile& b) { return a.length > b.length; });
  return tiles;
}

/// The rows of [0, num_rows) between and behind sequences, which are given in the order of their starts.
inline std::vector<AttentionGap> make_attention_gaps(std::span<const std::int32_t> starts,
                                                     std::span<const std::int32_t> lengths,
                                                     std::int32_t num_rows) {
  std::vector<AttentionGap> gaps;
  std::int32_t end = 0;
  const auto add_until = [&](std::int32_t start) {
    if (start > end) gaps.push_back({end, start - end});
  };
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    add_until(starts[s]);
    end = starts[s] + lengths[s];
  }
  add_until(num_rows);
  return gaps;
}

}  // namespace plenum::kernels::cuda
