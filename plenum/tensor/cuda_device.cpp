#include "plenum/tensor/cuda_device.h"

#include <cstdlib>

#include <fmt/format.h>

#include "plenum/tensor/cuda_check.h"

namespace plenum::tensor {
namespace {

/// Asynchronous copies, bf16 in tensor cores: what every kernel here is built on.
constexpr int kLeastMajor = 8;

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, 0), "ask the GPU for its properties");
  return value;
}

/// CUDA puts all streams into eight queues unless told otherwise: of ranks that share a GPU, what one sends
/// then waits for what another computes. Told before the driver is, which reads it once.
void ask_for_queues() {
  constexpr int kKeepTheUsers = 0;
  static const int asked = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeepTheUsers);
  static_cast<void>(asked);
}

void require_device() {
  const std::optional<std::string> obstacle = cuda_obstacle();
  base::require(!obstacle, "no GPU can be used: {}", obstacle.value_or(""));
}

}  // namespace

bool is_cuda_built() {
  return true;
}

std::optional<std::string> cuda_obstacle() {
  ask_for_queues();
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaErrorInsufficientDriver) return "no NVIDIA driver, or one too old for this build";
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) return "no GPU is visible";
  if (result != cudaSuccess) return cudaGetErrorString(result);
  const int major = attribute(cudaDevAttrComputeCapabilityMajor);
  const int minor = attribute(cudaDevAttrComputeCapabilityMinor);
  if (major < kLeastMajor) {
    return fmt::format("the GPU has compute capability {}.{}; {}.0 or later is needed", major, minor,
                       kLeastMajor);
  }
  return std::nullopt;
}

CudaDeviceInfo cuda_device_info() {
  require_device();
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "ask the GPU for its properties");
  CudaDeviceInfo info{.name = properties.name,
                      .major = properties.major,
                      .minor = properties.minor,
                      .num_multiprocessors = properties.multiProcessorCount,
                      .total_bytes = properties.totalGlobalMem};
  check_cuda(cudaDriverGetVersion(&info.driver_version), "ask for the driver's version");
  return info;
}

std::size_t cuda_free_bytes() {
  require_device();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const cudaError_t result = cudaMemGetInfo(&free_bytes, &total_bytes);
  // The first call that needs the GPU's memory meets whoever else uses it.
  base::require(result == cudaSuccess, "the GPU cannot be used: {}", cudaGetErrorString(result));
  return free_bytes;
}

}  // namespace plenum::tensor
