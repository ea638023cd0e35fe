#include "plenum/tensor/stream.h"

namespace plenum::tensor {

std::size_t Stream::scratch_bytes() const {
  if (device() == Device::Cuda) return scratch_.size();
  constexpr std::size_t kLine = 64;  // of the cache
  return scratch_.size() / pool().num_threads() / kLine * kLine;
}

std::span<std::byte> Stream::scratch(std::size_t thread) const {
  base::check(device() == Device::Cpu, "scratch of the GPU belongs to no thread: {}", thread);
  const std::size_t bytes = scratch_bytes();
  return scratch_.subspan(thread * bytes, bytes);
}

}  // namespace plenum::tensor
