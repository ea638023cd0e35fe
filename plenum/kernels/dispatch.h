#pragma once

#include "plenum/base/check.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels {

/// Whether this build has the CUDA backend. CMake tells this folder alone.
inline constexpr bool kHasCuda = PLENUM_HAS_CUDA != 0;

/// Runs an op on the device of the stream: dispatch<&cpu::op, &cuda::op>(stream, args). In a build without
/// CUDA `kCudaOp` has a declaration only, and nothing here refers to it; no stream of the GPU can be made
/// there.
template <auto kCpuOp, auto kCudaOp, typename... Args>
auto dispatch(const tensor::Stream& stream, const Args&... args) {
  if (stream.device() == tensor::Device::Cuda) {
    if constexpr (kHasCuda) {
      return kCudaOp(stream, args...);
    } else {
      throw base::InternalError("this build has no CUDA backend");
    }
  }
  return kCpuOp(stream, args...);
}

}  // namespace plenum::kernels
