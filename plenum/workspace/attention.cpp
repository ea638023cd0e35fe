#include "plenum/workspace/attention.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/workspace/product.h"
#include "plenum/workspace/rows.h"

namespace plenum::workspace {

using tensor::Device;

void require_head_width(std::int64_t head_width) {
  base::require(
      head_width == 64 || head_width == 128,
      "attention on the GPU needs heads of width 64 or 128; change the number of heads or use the CPU: "
      "the width is {}",
      head_width);
}

std::size_t attention_scratch_bytes(Device device, const AttentionSize& size) {
  if (device == Device::Cpu) return CpuAttentionScratch(size.max_length).end;
  require_head_width(size.head_width);  // so that whoever plans memory learns it
  return GpuAttentionScratch(size).end;
}

std::size_t attention_keep_bytes(Device device, const AttentionSize& size) {
  if (device == Device::Cpu) return 0;
  const std::int64_t num_column_blocks =
      (attention_launch_length(size.max_length) + kKeepBlockColumns - 1) / kKeepBlockColumns;
  return static_cast<std::size_t>(size.heads * num_column_blocks * size.rows + kKeepRowsBehind) *
         (kKeepWords * sizeof(std::uint32_t));
}

AttentionWorkCapacity attention_work_capacity(std::int64_t rows, std::int64_t sequences) {
  return {.tiles = rows / kAttentionTileRows + sequences, .gaps = sequences + 1};
}

std::int64_t attention_launch_length(std::int64_t max_length) {
  return (max_length + kAttentionTileRows - 1) / kAttentionTileRows * kAttentionTileRows;
}

CpuAttentionScratch::CpuAttentionScratch(std::int64_t length, std::int64_t most_rows) {
  constexpr std::size_t kLine = 64;  // of the cache
  columns = (length + kDropoutGroup - 1) / kDropoutGroup * kDropoutGroup;
  // An odd number of cache lines: columns of a matrix spread over all sets of the first-level cache.
  stride = (columns / kDropoutGroup | 1) * kDropoutGroup;
  gradients = static_cast<std::size_t>(most_rows * stride) * sizeof(float);
  row_values = 2 * gradients;
  const std::size_t row_values_bytes = static_cast<std::size_t>(most_rows) * sizeof(float);
  random_bytes = row_values + (row_values_bytes + kLine - 1) / kLine * kLine;
  gemm = random_bytes + dropout_buffer_bytes(most_rows * columns / kDropoutGroup);
  end = gemm + gemm_scratch_bytes();
}

std::size_t attention_scratch_bytes_sm80(std::int64_t num_rows, std::int64_t num_heads) {
  return static_cast<std::size_t>(num_rows * num_heads) * kQueryStatisticsBytes;
}

std::size_t attention_scratch_bytes_sm90(std::int64_t max_length) {
  return kMaxThreadBlocksSm90 * static_cast<std::size_t>(num_blocks_sm90(max_length)) * kBlockBytesSm90;
}

GpuAttentionScratch::GpuAttentionScratch(const AttentionSize& size) {
  const auto behind = [](std::size_t begin, std::size_t bytes) {
    return begin + (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  const std::size_t bits_bytes = attention_keep_bytes(Device::Cuda, size);
  by_query = behind(form, std::max(attention_scratch_bytes_sm80(size.rows, size.heads),
                                   attention_scratch_bytes_sm90(attention_launch_length(size.max_length))));
  by_key = behind(by_query, bits_bytes);
  end = behind(by_key, bits_bytes);
}

}  // namespace plenum::workspace
