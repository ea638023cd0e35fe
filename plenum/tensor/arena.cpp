#include "plenum/tensor/arena.h"

#include <sys/mman.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/tensor/cuda_memory.h"

namespace plenum::tensor {

Arena::Arena(std::size_t num_bytes, Device device) : num_bytes_(num_bytes), device_(device) {
  if (num_bytes == 0) return;
  if (device == Device::Cuda) {
    data_ = allocate_cuda(num_bytes);
    return;
  }
  void* memory = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  base::require(memory != MAP_FAILED, "the machine does not give {} of memory in one piece",
                base::format_bytes(num_bytes));
  data_ = static_cast<std::byte*>(memory);
  // Large pages spare the address translation misses of strided panels. Where they are off nothing is lost.
  madvise(memory, num_bytes, MADV_HUGEPAGE);
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  if (device_ == Device::Cuda) {
    free_cuda(data_);
  } else {
    munmap(data_, num_bytes_);
  }
}

TensorView Arena::view(const Block& block) const {
  base::check(block.offset + block.num_bytes() <= num_bytes_, "a block ends beyond its arena: {} + {} > {}",
              block.offset, block.num_bytes(), num_bytes_);
  return {data_ + block.offset, block.dtype, block.shape};
}

}  // namespace plenum::tensor
