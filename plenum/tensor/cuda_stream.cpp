#include "plenum/tensor/cuda_stream.h"

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/tensor/cuda_sum.h"

namespace plenum::tensor {

CudaStream::CudaStream(std::shared_ptr<const CudaPartition> partition, StreamPriority priority)
    : partition_(std::move(partition)) {
  const std::optional<std::string> obstacle = cuda_obstacle();
  base::require(!obstacle, "no GPU can be used: {}", obstacle.value_or(""));
  int last = 0;
  int first = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&last, &first), "tell the priorities of streams");
  const int number = priority == StreamPriority::First ? first : last;
  if (partition_) {
    handle_ = partition_->make_stream(number);
    num_multiprocessors_ = partition_->num_multiprocessors();
  } else {
    check_cuda(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, number), "make a stream");
    num_multiprocessors_ = cuda_device_info().num_multiprocessors;
  }
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

std::unique_ptr<QueueEvent> CudaStream::make_event(Timed timed) const {
  return std::make_unique<CudaEvent>(timed);
}

void CudaStream::record(QueueEvent& event) const {
  check_cuda(cudaEventRecord(dynamic_cast<CudaEvent&>(event).handle(), handle_), "record an event");
}

void CudaStream::wait_for(const QueueEvent& event) const {
  check_cuda(cudaStreamWaitEvent(handle_, dynamic_cast<const CudaEvent&>(event).handle(), 0),
             "let a stream wait");
}

void CudaStream::copy(std::span<const std::byte> from, std::span<std::byte> to) const {
  base::check(from.size() == to.size(), "as many bytes must come as go: {} and {}", from.size(), to.size());
  if (from.empty()) return;
  check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, handle_),
             "copy within the GPU");
}

void CudaStream::sum(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                     std::size_t count, DType dtype) const {
  sum_on_gpu(handle_, sources, destinations, count, dtype);
}

CudaEvent::CudaEvent(WorkQueue::Timed timed) {
  const unsigned flags = timed == WorkQueue::Timed::Yes ? cudaEventDefault : cudaEventDisableTiming;
  check_cuda(cudaEventCreateWithFlags(&handle_, flags), "make an event");
}

CudaEvent::~CudaEvent() {
  cudaEventDestroy(handle_);
}

bool CudaEvent::is_done() const {
  const cudaError_t result = cudaEventQuery(handle_);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();  // which remembers it, though it is no error
    return false;
  }
  check_cuda(result, "finish what comes before an event");
  return true;
}

double CudaEvent::seconds_since(const QueueEvent& earlier) const {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, dynamic_cast<const CudaEvent&>(earlier).handle(), handle_),
             "read the time between events");
  return static_cast<double>(milliseconds) * 1e-3;
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
