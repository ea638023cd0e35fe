#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/tensor/dtype.h"
#include "plenum/tensor/shape.h"

namespace plenum::tensor {

/// Where a tensor will lie in an arena.
struct Block {
  std::size_t offset = 0;
  DType dtype = DType::Float32;
  Shape shape;

  std::size_t num_bytes() const { return static_cast<std::size_t>(shape.num_elements()) * size_of(dtype); }
};

/// The contents of an arena, laid out before any of it is allocated: what is planned is what is taken. Blocks
/// are aligned to what the libraries of GPUs want; that is four cache lines.
///
/// Memory whose use does not overlap in time is shared by going back: `mark` before the first use, `rewind`
/// before the next. The arena is as large as the highest point reached.
class MemoryLayout {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// What the bytes are for, as a report of memory names it.
  struct Line {
    std::string purpose;
    std::size_t bytes = 0;
  };

  /// The next block, of a purpose such as "parameters" or "activations". Throws UserError if all together
  /// are more than a process can address.
  Block add(const std::string& purpose, DType dtype, Shape shape);

  std::size_t mark() const { return end_; }
  void rewind(std::size_t mark) { end_ = mark; }

  /// Of the whole arena.
  std::size_t num_bytes() const { return highest_; }
  /// By purpose, in order of first use. Where memory is shared the lines add up to more than num_bytes().
  const std::vector<Line>& lines() const { return lines_; }

  /// Where a block lies, in bytes.
  struct Extent {
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };
  /// Of all blocks, in the order in which they were added.
  const std::vector<Extent>& extents() const { return extents_; }

 private:
  std::vector<Extent> extents_;
  std::size_t end_ = 0;
  std::size_t highest_ = 0;
  std::vector<Line> lines_;
};

/// What an arena of this layout takes of the machine's memory if each block is used from its begin on as far
/// as the same block of `used` reaches: the system gives whole pages, and only those that are written to.
/// Layouts of the same code for sizes of which none is larger in `used`.
std::size_t touched_bytes(const MemoryLayout& planned, const MemoryLayout& used, std::size_t page_bytes);

}  // namespace plenum::tensor
