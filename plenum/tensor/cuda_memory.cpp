#include "plenum/tensor/cuda_memory.h"

#include "plenum/base/units.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::tensor {

std::byte* allocate_cuda(std::size_t num_bytes) {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, num_bytes);
  if (result != cudaSuccess) cudaGetLastError();  // told here: nobody else is to find it
  base::require(result == cudaSuccess, "the GPU does not give {} of memory in one piece: {}",
                base::format_bytes(num_bytes), cudaGetErrorString(result));
  check_cuda(cudaMemset(memory, 0, num_bytes), "clear memory");
  // Streams do not wait for the one that clears.
  check_cuda(cudaDeviceSynchronize(), "clear memory");
  return static_cast<std::byte*>(memory);
}

void free_cuda(std::byte* memory) noexcept {
  cudaFree(memory);
}

void copy_cuda(const CudaStream& stream, const void* from, void* to, std::size_t num_bytes) {
  check_cuda(cudaMemcpyAsync(to, from, num_bytes, cudaMemcpyDefault, stream.handle()), "copy memory");
}

void zero_cuda(const CudaStream& stream, void* memory, std::size_t num_bytes) {
  check_cuda(cudaMemsetAsync(memory, 0, num_bytes, stream.handle()), "clear memory");
}

}  // namespace plenum::tensor
