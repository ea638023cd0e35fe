#include "plenum/tensor/memory_layout.h"

#include <algorithm>

namespace plenum::tensor {

Block MemoryLayout::add(const std::string& purpose, DType dtype, Shape shape) {
  const Block block{.offset = end_, .dtype = dtype, .shape = shape};
  const std::size_t bytes = (block.num_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  end_ += bytes;
  highest_ = std::max(highest_, end_);
  const auto line = std::find_if(lines_.begin(), lines_.end(),
                                 [&](const Line& candidate) { return candidate.purpose == purpose; });
  if (line == lines_.end()) {
    lines_.push_back({purpose, bytes});
  } else {
    line->bytes += bytes;
  }
  return block;
}

}  // namespace plenum::tensor
