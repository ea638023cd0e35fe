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

}  // namespace plenum::workspace
