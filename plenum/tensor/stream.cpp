#include "plenum/tensor/stream.h"

#include "plenum/tensor/memory_layout.h"

namespace plenum::tensor {

std::size_t Stream::scratch_bytes_per_thread() const {
  constexpr std::size_t kLine = MemoryLayout::kAlignment;
  return scratch_.size() / pool_.num_threads() / kLine * kLine;
}

std::span<std::byte> Stream::scratch(std::size_t thread) const {
  const std::size_t bytes = scratch_bytes_per_thread();
  return scratch_.subspan(thread * bytes, bytes);
}

}  // namespace plenum::tensor
