#pragma once

#include <cstdint>

#include "plenum/tensor/dtype.h"

namespace plenum::tensor {

/// Where tensors lie and kernels run.
enum class Device : std::uint8_t { Cpu, Cuda };

/// What activations and the weights that products read are kept as. Statistics, losses, gradients of weights
/// and what the optimizer keeps are Float32 everywhere.
constexpr DType compute_dtype(Device device) {
  return device == Device::Cpu ? DType::Float32 : DType::BFloat16;
}

}  // namespace plenum::tensor
