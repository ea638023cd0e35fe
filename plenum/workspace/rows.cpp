#include "plenum/workspace/rows.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::workspace {

using tensor::Device;

void require_row_width(std::int64_t width) {
  base::require(
      width <= kMaxRowWidth,
      "on the GPU a model has a width of at most {}; choose a smaller one or use the CPU: the width "
      "is {}",
      kMaxRowWidth, width);
}

std::size_t dropout_rows_scratch_bytes(Device device, std::int64_t width) {
  if (device == Device::Cpu) return row_dropout_bytes(width);
  require_row_width(width);
  return 0;
}

std::size_t layer_norm_scratch_bytes(Device device, std::int64_t width) {
  const std::size_t sums_bytes = kMaxLayerNormSums * static_cast<std::size_t>(width) * sizeof(float);
  if (device == Device::Cpu) return row_dropout_bytes(width) + kMostLayerNormBlocks * sums_bytes;
  require_row_width(width);  // so that whoever plans memory learns it
  return kMaxLayerNormParts * sums_bytes;
}

std::size_t embedding_scratch_bytes(Device device, std::int64_t num_rows, std::int64_t width) {
  const std::size_t norm_bytes = layer_norm_scratch_bytes(device, width);
  if (device == Device::Cpu) return norm_bytes;
  const std::size_t piece_bytes = 2 * static_cast<std::size_t>(width) * sizeof(float) + kOpenTableGroupBytes;
  return std::max(norm_bytes,
                  static_cast<std::size_t>(num_table_pieces(num_rows)) * kNumTables * piece_bytes);
}

}  // namespace plenum::workspace
