#pragma once

#include <cuda_runtime_api.h>

#include "plenum/base/check.h"

namespace plenum::tensor {

/// Throws DeviceError if the GPU broke down, otherwise InternalError with the place that noticed it. For
/// check_cuda().
[[noreturn]] void fail_cuda(cudaError_t result, const char* what, const base::Condition& noticed);

/// Throws if a call of CUDA failed. `what` says what was being done. Work that went wrong in the queue is
/// told by whichever call comes next, and by all calls after it.
inline void check_cuda(cudaError_t result, const char* what, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  const base::Condition is_done(result == cudaSuccess, file, line);
  if (!is_done.value()) fail_cuda(result, what, is_done);
}

/// Throws as check_cuda() does if work in the queue has gone wrong already. For failures that a library tells
/// as its own: the reason may lie before it.
void check_cuda_before(const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace plenum::tensor
