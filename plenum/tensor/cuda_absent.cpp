// Stands for the other cuda_*.cpp in a build without CUDA.
#include "plenum/base/check.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/tensor/cuda_graph.h"
#include "plenum/tensor/cuda_memory.h"
#include "plenum/tensor/cuda_range.h"
#include "plenum/tensor/cuda_stream.h"

namespace plenum::tensor {
namespace {

constexpr const char* kObstacle = "this build has no CUDA backend; run make build PRESET=cuda";

[[noreturn]] void refuse() {
  base::fail("no GPU can be used: {}", kObstacle);
}

}  // namespace

bool is_cuda_built() {
  return false;
}
std::optional<std::string> cuda_obstacle() {
  return kObstacle;
}
CudaDeviceInfo cuda_device_info() {
  refuse();
}
std::size_t cuda_free_bytes() {
  refuse();
}

CudaPartition::CudaPartition(Handles handles) : handles_(handles) {}
CudaPartition::~CudaPartition() = default;
std::vector<std::shared_ptr<const CudaPartition>> CudaPartition::split(std::size_t) {
  refuse();
}
CUstream_st* CudaPartition::make_stream(int) const {
  refuse();
}

CudaStream::CudaStream(std::shared_ptr<const CudaPartition>, StreamPriority) {
  refuse();
}
CudaStream::~CudaStream() = default;
void CudaStream::wait() const {}
void CudaStream::drain() const noexcept {}

std::unique_ptr<QueueEvent> CudaStream::make_event(Timed) const {
  refuse();
}
void CudaStream::record(QueueEvent&) const {}
void CudaStream::wait_for(const QueueEvent&) const {}
void CudaStream::copy(std::span<const std::byte>, std::span<std::byte>) const {}
void CudaStream::sum(std::span<const std::byte* const>, std::span<std::byte* const>, std::size_t,
                     DType) const {}

CudaEvent::CudaEvent(WorkQueue::Timed) {
  refuse();
}
CudaEvent::~CudaEvent() = default;
bool CudaEvent::is_done() const {
  return true;
}
double CudaEvent::seconds_since(const QueueEvent&) const {
  return 0;
}

CudaGraph::CudaGraph(const CudaStream&, const std::function<void()>&) {
  refuse();
}
CudaGraph::~CudaGraph() = default;
void CudaGraph::start(const CudaStream&) const {}

bool is_profiled() {
  return false;
}
void CudaRange::begin(const std::string&) {}
void CudaRange::end() noexcept {}

PinnedMemory::PinnedMemory(std::size_t) {
  refuse();
}
PinnedMemory::~PinnedMemory() = default;

std::byte* allocate_cuda(std::size_t) {
  refuse();
}
void free_cuda(std::byte*) noexcept {}
void copy_cuda(const CudaStream&, const void*, void*, std::size_t) {
  refuse();
}
void zero_cuda(const CudaStream&, void*, std::size_t) {
  refuse();
}

}  // namespace plenum::tensor
