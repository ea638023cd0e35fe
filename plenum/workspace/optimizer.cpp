#include "plenum/workspace/optimizer.h"

#include <algorithm>

namespace plenum::workspace {

std::size_t optimizer_scratch_bytes(tensor::Device device, std::int64_t num_elements,
                                    std::int64_t num_ranges) {
  if (device == tensor::Device::Cpu) return 0;
  const auto squares = static_cast<std::size_t>(num_square_blocks(num_elements)) * sizeof(double);
  const auto chunks = static_cast<std::size_t>(num_elements / kOptimizerChunk + num_ranges);
  const std::size_t lamb = chunks * kLambSquaresBytes + static_cast<std::size_t>(num_ranges) * sizeof(float);
  return std::max(squares, lamb);
}

std::int64_t newton_schulz_room(tensor::Device device, const FlatMatrices& matrices) {
  const std::int64_t squares = 2 * matrices.least_size() * matrices.least_size();
  if (device == tensor::Device::Cpu) return matrices.num_elements() + squares;
  return matrices.count * squares;
}

std::int64_t newton_schulz_room(tensor::Device device, std::span<const FlatMatrices> groups) {
  std::int64_t most = 0;
  for (const FlatMatrices& group : groups) most = std::max(most, newton_schulz_room(device, group));
  return most;
}

std::int64_t num_matrix_chunks(std::span<const FlatMatrices> groups) {
  std::int64_t count = 0;
  for (const FlatMatrices& group : groups) count += group.count * num_optimizer_chunks(group.num_elements());
  return count;
}

}  // namespace plenum::workspace
