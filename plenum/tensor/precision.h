#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plenum/tensor/device.h"
#include "plenum/tensor/dtype.h"

namespace plenum::tensor {

/// What a tensor is to training.
enum class Role : std::uint8_t {
  Weight,      ///< as products read it
  Master,      ///< a weight as the optimizer keeps it, and those of layer norms
  Activation,  ///< and its gradient
  Gradient,    ///< of a weight, summed over a step
  State,       ///< what the optimizer keeps beside weights
  Statistic,   ///< means, deviations, softmax's denominators, losses
};

/// What elements of tensors are, by the tensors' roles.
class Precision {
 public:
  struct Types {
    DType weight = DType::Float32;
    DType master = DType::Float32;
    DType activation = DType::Float32;
    DType gradient = DType::Float32;
    DType state = DType::Float32;
    DType statistic = DType::Float32;
  };

  constexpr Precision() : Precision(Types{}) {}
  constexpr explicit Precision(const Types& types)
      : types_{types.weight, types.master, types.activation, types.gradient, types.state, types.statistic} {}

  constexpr DType of(Role role) const { return types_[static_cast<std::size_t>(role)]; }
  /// Whether products read the optimizer's own weights.
  constexpr bool shares_weights() const { return of(Role::Weight) == of(Role::Master); }

  friend constexpr bool operator==(const Precision&, const Precision&) = default;

 private:
  std::array<DType, 6> types_;
};

/// The row of the table that a device's kernels are made for, and so the default: Float32 on the CPU,
/// bfloat16 products with sums in Float32 on the GPU.
constexpr Precision precision_of(Device device) {
  if (device == Device::Cpu) return Precision();
  return Precision({.weight = DType::BFloat16, .activation = DType::BFloat16});
}

}  // namespace plenum::tensor
