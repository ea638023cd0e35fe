#pragma once

#include <cstddef>
#include <span>

#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::tensor {

/// The memory that a MemoryLayout describes, allocated at once and zero at first.
class Arena {
 public:
  /// Throws UserError, with the number, if the machine does not give that much.
  explicit Arena(std::size_t num_bytes);
  explicit Arena(const MemoryLayout& layout) : Arena(layout.num_bytes()) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::size_t num_bytes() const { return num_bytes_; }
  TensorView view(const Block& block) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t num_bytes_ = 0;
};

}  // namespace plenum::tensor
