#include "plenum/tensor/cuda_partition.h"

#include <utility>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "plenum/base/check.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::tensor {
namespace {

/// Asks the driver for a function by name: the program is not linked with the driver and starts without it.
/// Null where the driver has none.
template <typename Function>
Function driver_function(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &entry, 12050, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
  const bool is_found = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
  if (error != cudaSuccess) cudaGetLastError();  // told here: nobody else is to find it
  return is_found ? reinterpret_cast<Function>(entry) : nullptr;
}

struct Driver {
  decltype(&cuDeviceGetDevResource) resource_of =
      driver_function<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource");
  decltype(&cuDevSmResourceSplitByCount) split =
      driver_function<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount");
  decltype(&cuDevResourceGenerateDesc) describe =
      driver_function<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc");
  decltype(&cuGreenCtxCreate) make_context = driver_function<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate");
  decltype(&cuGreenCtxDestroy) destroy_context =
      driver_function<decltype(&cuGreenCtxDestroy)>("cuGreenCtxDestroy");
  decltype(&cuGreenCtxStreamCreate) make_stream =
      driver_function<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate");

  bool is_complete() const {
    return resource_of != nullptr && split != nullptr && describe != nullptr && make_context != nullptr &&
           destroy_context != nullptr && make_stream != nullptr;
  }
};

const Driver& driver() {
  static const Driver functions;
  return functions;
}

void require_done(CUresult result, const char* what) {
  base::require(result == CUDA_SUCCESS,
                "the GPU cannot be shared by ranks: the driver does not {} (error {})", what,
                static_cast<int>(result));
}

}  // namespace

CudaPartition::CudaPartition(Handles handles) : handles_(handles) {}

CudaPartition::~CudaPartition() {
  driver().destroy_context(handles_.context);
}

std::vector<std::shared_ptr<const CudaPartition>> CudaPartition::split(std::size_t count) {
  const std::optional<std::string> obstacle = cuda_obstacle();
  base::require(!obstacle, "no GPU can be used: {}", obstacle.value_or(""));
  base::require(driver().is_complete(),
                "the GPU cannot be shared by ranks: its driver has no green contexts, which came with CUDA "
                "12.4");
  int device = 0;
  check_cuda(cudaGetDevice(&device), "look for the GPU");
  check_cuda(cudaFree(nullptr), "begin to use the GPU");  // whose context all parts belong to
  CUdevResource whole{};
  require_done(driver().resource_of(device, &whole, CU_DEV_RESOURCE_TYPE_SM), "tell its multiprocessors");
  // Parts grow in steps that the GPU sets: the largest that gives enough of them.
  std::vector<CUdevResource> parts(count);
  auto num_groups = static_cast<unsigned>(count);
  CUdevResource rest{};
  unsigned size = whole.sm.smCount / static_cast<unsigned>(count);
  for (; size > 0; --size) {
    num_groups = static_cast<unsigned>(count);
    const CUresult result = driver().split(parts.data(), &num_groups, &whole, &rest, 0, size);
    if (result == CUDA_SUCCESS && num_groups == count) break;
  }
  base::require(size > 0, "a GPU of {} multiprocessors has no {} parts", whole.sm.smCount, count);
  std::vector<std::shared_ptr<const CudaPartition>> partitions;
  for (CUdevResource& part : parts) {
    CUdevResourceDesc description{};
    require_done(driver().describe(&description, &part, 1), "describe a part of it");
    CUgreenCtx context = nullptr;
    require_done(driver().make_context(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
                 "make a part of it");
    partitions.push_back(std::shared_ptr<const CudaPartition>(
        new CudaPartition({.context = context, .num_multiprocessors = static_cast<int>(part.sm.smCount)})));
  }
  return partitions;
}

CUstream_st* CudaPartition::make_stream(int priority) const {
  CUstream stream = nullptr;
  require_done(driver().make_stream(&stream, handles_.context, CU_STREAM_NON_BLOCKING, priority),
               "make a stream");
  return stream;
}

}  // namespace plenum::tensor
