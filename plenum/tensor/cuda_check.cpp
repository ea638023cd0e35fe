#include "plenum/tensor/cuda_check.h"

#include <string>

#include <fmt/format.h>

#include "plenum/tensor/device_error.h"

namespace plenum::tensor {
namespace {

/// Whether it is the machine that failed. Kernels that go wrong (an address that is not theirs, an illegal
/// instruction) are bugs of those who wrote them.
bool is_breakdown(cudaError_t result) {
  switch (result) {
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
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
      return false;
  }
}

}  // namespace

void fail_cuda(cudaError_t result, const char* what, const base::Condition& noticed) {
  const std::string reason =
      fmt::format("failed to {}: {} ({})", what, cudaGetErrorString(result), cudaGetErrorName(result));
  if (is_breakdown(result)) throw DeviceError("the GPU " + reason);
  base::throw_internal_error(noticed, "the GPU " + reason);
}

}  // namespace plenum::tensor
