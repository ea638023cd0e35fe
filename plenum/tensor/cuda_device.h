#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace plenum::tensor {

// CUDA as the rest of Plenum sees it: no header of CUDA is needed to use these. A build without CUDA has them
// too; there, is_cuda_built() is false and everything else refuses.

/// Whether this build has the CUDA backend.
bool is_cuda_built();

/// Why no GPU can be used: no backend in this build, no driver, no GPU, or one that is too old. Nothing where
/// one can.
std::optional<std::string> cuda_obstacle();

struct CudaDeviceInfo {
  std::string name;
  int major = 0;  ///< of the compute capability
  int minor = 0;
  int num_multiprocessors = 0;
  std::size_t total_bytes = 0;
  int driver_version = 0;  ///< the CUDA version it supports: 13000 for 13.0
};
/// Of the GPU in use. Throws UserError with the obstacle where there is none.
CudaDeviceInfo cuda_device_info();

/// What is free of the GPU's memory now. Throws UserError with the obstacle where there is none.
std::size_t cuda_free_bytes();

}  // namespace plenum::tensor
