#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::tensor {

/// Copies elements between tensors of the same type and number of elements. On a stream of the GPU either may
/// lie in the host's memory, and the copy happens in the order of the stream: what is copied to the host is
/// there after stream.wait().
void copy(const Stream& stream, const ConstTensorView& from, const TensorView& to);

/// Sets all elements to zero.
void set_zero(const Stream& stream, const TensorView& view);

}  // namespace plenum::tensor
