#include "plenum/tensor/memory_layout.h"

#include <algorithm>
#include <optional>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::tensor {
namespace {

// The addresses of a process on x86-64. Whatever is below can be added up without overflow.
constexpr std::size_t kMostBytes = std::size_t{1} << 47;

/// Rounded up to whole cache lines; none if there are more than kMostBytes.
std::optional<std::size_t> bytes_of(const Block& block) {
  std::size_t bytes = size_of(block.dtype);
  for (const std::int64_t size : block.shape.sizes()) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) return {};
  }
  if (bytes > kMostBytes) return {};
  return (bytes + MemoryLayout::kAlignment - 1) / MemoryLayout::kAlignment * MemoryLayout::kAlignment;
}

}  // namespace

Block MemoryLayout::add(const std::string& purpose, DType dtype, Shape shape) {
  const Block block{.offset = end_, .dtype = dtype, .shape = shape};
  const std::optional<std::size_t> planned = bytes_of(block);
  if (!planned || *planned > kMostBytes - end_) {
    base::fail(
        "the plan needs more memory than a process can have, take a smaller model or micro-batch: more than "
        "{} with {} of shape {}",
        base::format_bytes(kMostBytes), purpose, to_string(shape));
  }
  const std::size_t bytes = *planned;
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
