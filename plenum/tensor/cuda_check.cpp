#include "plenum/tensor/cuda_check.h"

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "plenum/tensor/device_error.h"

namespace plenum::tensor {
namespace {

/// cudaErrorContained, a name that CUDA has from 12.8 on; drivers tell it to older programs too.
constexpr auto kErrorContained = static_cast<cudaError_t>(226);

/// Whether it is the machine that failed. Kernels that go wrong (an address that is not theirs, an illegal
/// instruction) are bugs of those who wrote them.
bool is_breakdown(cudaError_t result) {
  switch (result) {
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorOperatingSystem:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return result == kErrorContained;
  }
}

}  // namespace

void fail_cuda(cudaError_t result, const char* what, const base::Condition& noticed) {
  const std::string reason =
      fmt::format("failed to {}: {} ({})", what, cudaGetErrorString(result), cudaGetErrorName(result));
  if (is_breakdown(result)) throw DeviceError("the GPU " + reason);
  base::throw_internal_error(noticed, "the GPU " + reason);
}

void check_cuda_before(const char* what, const char* file, int line) {
  // Asks the driver, as the runtime's own memory of errors does not, and may be called while work is
  // recorded.
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), what, file, line);
}

}  // namespace plenum::tensor
