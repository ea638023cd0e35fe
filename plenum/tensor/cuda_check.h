#pragma once

#include <cuda_runtime_api.h>

#include "plenum/base/check.h"

namespace plenum::tensor {

/// Throws InternalError if a call of CUDA failed. `what` says what was being done.
inline void check_cuda(cudaError_t result, const char* what) {
  base::check(result == cudaSuccess, "CUDA failed to {}: {}", what, cudaGetErrorString(result));
}

}  // namespace plenum::tensor
