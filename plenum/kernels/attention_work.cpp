#include "plenum/kernels/attention_work.h"

#include "plenum/kernels/cuda/attention/attention_tiles.h"

namespace plenum::kernels {

AttentionWorkList attention_work_list(const batch::SequenceOffsets& sequences) {
  AttentionWorkList list;
  for (const cuda::AttentionTile& tile :
       cuda::make_attention_tiles(sequences.starts, sequences.lengths, cuda::kAttentionTileRows)) {
    list.tiles_N4.insert(list.tiles_N4.end(), {tile.start, tile.length, tile.first, tile.sequence});
  }
  for (const cuda::AttentionGap& gap : cuda::make_attention_gaps(
           sequences.starts, sequences.lengths, static_cast<std::int32_t>(sequences.num_rows))) {
    list.gaps_G2.insert(list.gaps_G2.end(), {gap.start, gap.length});
  }
  return list;
}

}  // namespace plenum::kernels
