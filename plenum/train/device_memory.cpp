#include "plenum/train/device_memory.h"

#include <algorithm>

#include "plenum/base/machine.h"
#include "plenum/pipeline/recorded_work.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::train {
namespace {

using tensor::Device;

/// What kernels and libraries take of the GPU when they are first used: 10 to 18 MB were seen on an H200.
constexpr std::uint64_t kForLibraries = std::uint64_t{64} << 20;

/// What a node of a recording takes. Not measured: it is what NVIDIA's own cache of graphs (CUDASTF) counts.
constexpr std::uint64_t kForNode = std::uint64_t{10} << 10;

/// Of the GPU, for what no plan has: 224 MiB.
constexpr std::uint64_t kOutsideThePlan = kForLibraries + pipeline::kMostRecordedNodes * kForNode;

}  // namespace

DeviceMemory::DeviceMemory(Device device)
    : device_(device), free_bytes_(device == Device::Cuda ? tensor::cuda_free_bytes() : 0) {}

std::uint64_t DeviceMemory::available_bytes() const {
  if (device_ == Device::Cpu) return base::available_memory_bytes();
  const std::uint64_t free_bytes = tensor::cuda_free_bytes();
  return std::max(free_bytes, kOutsideThePlan + 1) - kOutsideThePlan;  // at least 1, because 0 is unknown
}

std::uint64_t DeviceMemory::used_bytes() const {
  if (device_ == Device::Cpu) return base::peak_memory_bytes();
  const std::uint64_t free_bytes = tensor::cuda_free_bytes();
  return std::max(free_bytes, free_bytes_) - free_bytes;
}

}  // namespace plenum::train
