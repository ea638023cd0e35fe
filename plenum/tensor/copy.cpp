#include "plenum/tensor/copy.h"

#include <algorithm>
#include <cstring>

#include "plenum/tensor/cuda_memory.h"

namespace plenum::tensor {
namespace {

/// What a thread takes at a time.
constexpr std::size_t kBlock = std::size_t{1} << 20;

/// Calls work(offset, size) for every block of so many bytes, on all threads.
template <typename Work>
void for_blocks(const Stream& stream, std::size_t num_bytes, const Work& work) {
  stream.pool().run((num_bytes + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t begin = block * kBlock;
    work(begin, std::min(kBlock, num_bytes - begin));
  });
}

}  // namespace

void copy(const Stream& stream, const ConstTensorView& from, const TensorView& to) {
  base::check(from.dtype() == to.dtype() && from.num_elements() == to.num_elements(),
              "a copy changes neither type nor number: {} of {} to {} of {}", from.num_elements(),
              dtype_name(from.dtype()), to.num_elements(), dtype_name(to.dtype()));
  if (from.num_elements() == 0) return;
  if (stream.device() == Device::Cuda)
    return copy_cuda(stream.cuda(), from.raw(), to.raw(), from.num_bytes());
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* destination = static_cast<std::byte*>(to.raw());
  for_blocks(stream, from.num_bytes(), [&](std::size_t begin, std::size_t size) {
    std::memcpy(destination + begin, source + begin, size);
  });
}

void set_zero(const Stream& stream, const TensorView& view) {
  if (view.num_elements() == 0) return;
  if (stream.device() == Device::Cuda) return zero_cuda(stream.cuda(), view.raw(), view.num_bytes());
  auto* memory = static_cast<std::byte*>(view.raw());
  for_blocks(stream, view.num_bytes(),
             [&](std::size_t begin, std::size_t size) { std::memset(memory + begin, 0, size); });
}

}  // namespace plenum::tensor
