#pragma once

#include <cstdint>
#include <string_view>

#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Throws InternalError unless an argument was given and has this type and shape.
inline void check_argument(std::string_view name, tensor::ConstTensorView argument, tensor::DType dtype,
                           const tensor::Shape& shape) {
  base::check(argument.dtype() == dtype && argument.shape() == shape,
              "{} must be {} of shape {}, not {} of shape {}", name, tensor::dtype_name(dtype),
              tensor::to_string(shape), tensor::dtype_name(argument.dtype()),
              tensor::to_string(argument.shape()));
  base::check(static_cast<bool>(argument) || argument.num_elements() == 0, "{} is left out", name);
}

/// The same for Float32, which most are.
inline void check_argument(std::string_view name, tensor::ConstTensorView argument,
                           const tensor::Shape& shape) {
  check_argument(name, argument, tensor::DType::Float32, shape);
}

/// Throws InternalError unless an argument begins where the GPU can copy 16 bytes at once, or is left out.
inline void check_alignment(std::string_view name, tensor::ConstTensorView argument) {
  constexpr std::uintptr_t kAlignment = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(argument.raw());
  base::check(address % kAlignment == 0, "{} must begin at a multiple of {} bytes, not at {:#x}", name,
              kAlignment, address);
}

}  // namespace plenum::kernels
