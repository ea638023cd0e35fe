#include "plenum/tensor/cuda_stream.h"

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::tensor {

CudaStream::CudaStream() {
  const std::optional<std::string> obstacle = cuda_obstacle();
  base::require(!obstacle, "no GPU can be used: {}", obstacle.value_or(""));
  check_cuda(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "make a stream");
}

CudaStream::~CudaStream() {
  cudaStreamDestroy(handle_);
}

void CudaStream::wait() const {
  check_cuda(cudaStreamSynchronize(handle_), "finish a stream's work");
}

void CudaStream::drain() const noexcept {
  cudaStreamSynchronize(handle_);
}

CudaEvent::CudaEvent() {
  // Who waits leaves the core to others.
  check_cuda(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming | cudaEventBlockingSync),
             "make an event");
}

CudaEvent::~CudaEvent() {
  cudaEventDestroy(handle_);
}

void CudaEvent::record(const CudaStream& stream) {
  check_cuda(cudaEventRecord(handle_, stream.handle()), "record an event");
}

void CudaEvent::hold(const CudaStream& stream) const {
  check_cuda(cudaStreamWaitEvent(stream.handle(), handle_, 0), "let a stream wait");
}

void CudaEvent::wait() const {
  check_cuda(cudaEventSynchronize(handle_), "wait for an event");
}

PinnedMemory::PinnedMemory(std::size_t num_bytes) : num_bytes_(num_bytes) {
  if (num_bytes == 0) return;
  void* memory = nullptr;
  const cudaError_t result = cudaMallocHost(&memory, num_bytes);
  if (result != cudaSuccess) cudaGetLastError();  // told here: nobody else is to find it
  base::require(result == cudaSuccess, "the machine does not give {} of pinned memory: {}",
                base::format_bytes(num_bytes), cudaGetErrorString(result));
  data_ = static_cast<std::byte*>(memory);
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

}  // namespace plenum::tensor
