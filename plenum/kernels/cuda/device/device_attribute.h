#pragma once

#include <cuda_runtime_api.h>

#include "plenum/kernels/cuda/device/sm90.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {

/// Of the device that the calling thread uses.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  tensor::check_cuda(cudaGetDevice(&device), "tell its device");
  tensor::check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "describe its device");
  return value;
}

/// Whether the kernels of *_sm90.cu run on it. Other architectures do not have all that they are made of,
/// later ones included.
inline bool is_hopper() {
  constexpr int kHopper = 9;
  return has_sm90_kernels() && device_attribute(cudaDevAttrComputeCapabilityMajor) == kHopper;
}

}  // namespace plenum::kernels::cuda
