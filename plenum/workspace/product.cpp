#include "plenum/workspace/product.h"

#include <algorithm>

#include "plenum/tensor/bfloat16.h"

namespace plenum::workspace {

using tensor::Device;

std::size_t linear_scratch_bytes(Device device) {
  if (device == Device::Cpu) return gemm_scratch_bytes();
  // Room to measure what is added to gradients: of inputs up to 32768 tokens of BERT-large, and of any
  // weight.
  constexpr std::size_t kMeasuredBytes = std::size_t{32768} * 1024 * sizeof(tensor::BFloat16);
  return matmul_scratch_bytes(kMeasuredBytes);
}

std::size_t mlp_gelu_scratch_bytes(Device device, std::int64_t num_rows, std::int64_t mlp_width) {
  if (device == Device::Cpu) return gemm_scratch_bytes();
  return std::max(matmul_scratch_bytes(), gelu_block_sums_bytes(num_rows, mlp_width));
}

std::int64_t vocabulary_tiles(Device device, std::int64_t vocabulary) {
  if (device == Device::Cuda) return 0;
  return (vocabulary + kVocabularyTile - 1) / kVocabularyTile;
}

std::int64_t vocabulary_stride(Device device, std::int64_t vocabulary) {
  if (device == Device::Cpu) return vocabulary;
  constexpr std::int64_t kElements = 64;  // a line of the GPU's cache
  return (vocabulary + kElements - 1) / kElements * kElements;
}

std::size_t vocabulary_loss_scratch_bytes(Device device) {
  if (device == Device::Cpu) return gemm_scratch_bytes();
  // Room to measure the products that accumulate into dh: 8,192 positions of width 1,024.
  constexpr std::size_t kMeasuredBytes = std::size_t{8192} * 1024 * sizeof(tensor::BFloat16);
  return matmul_scratch_bytes(kMeasuredBytes);
}

}  // namespace plenum::workspace
