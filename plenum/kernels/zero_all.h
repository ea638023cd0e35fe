#pragma once

#include <span>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Sets all elements of many Float32 tensors to zero. On the GPU hundreds of them are one launch: a fill for
/// each would take longer than it takes to write them.
void zero_all(const tensor::Stream& stream, std::span<const tensor::TensorView> tensors);

}  // namespace plenum::kernels
