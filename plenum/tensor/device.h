#pragma once

#include <cstdint>

namespace plenum::tensor {

/// Where tensors lie and kernels run.
enum class Device : std::uint8_t { Cpu, Cuda };

}  // namespace plenum::tensor
