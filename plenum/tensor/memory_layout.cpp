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
  extents_.push_back({block.offset, bytes});
  const auto line = std::find_if(lines_.begin(), lines_.end(),
                                 [&](const Line& candidate) { return candidate.purpose == purpose; });
  if (line == lines_.end()) {
    lines_.push_back({purpose, bytes});
  } else {
    line->bytes += bytes;
  }
  return block;
}

std::size_t touched_bytes(const MemoryLayout& planned, const MemoryLayout& used, std::size_t page_bytes) {
  base::check(planned.extents().size() == used.extents().size(), "layouts are of different code: {} and {}",
              planned.extents().size(), used.extents().size());
  std::vector<MemoryLayout::Extent> written;
  for (std::size_t i = 0; i < planned.extents().size(); ++i) {
    const std::size_t bytes = std::min(planned.extents()[i].bytes, used.extents()[i].bytes);
    if (bytes > 0) written.push_back({planned.extents()[i].begin, bytes});
  }
  std::ranges::sort(written, {}, &MemoryLayout::Extent::begin);
  std::size_t pages = 0;
  std::size_t counted = 0;  // pages before this one
  for (const auto& [begin, bytes] : written) {
    const std::size_t first = std::max(begin / page_bytes, counted);
    const std::size_t end = (begin + bytes + page_bytes - 1) / page_bytes;
    if (end <= first) continue;
    pages += end - first;
    counted = end;
  }
  return std::min(pages * page_bytes, planned.num_bytes());
}

}  // namespace plenum::tensor
