#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Rounds every element to the type that products on the GPU read.
struct RoundToCompute {
  tensor::ConstTensorView x_N;  ///< Float32
  tensor::TensorView y_N;       ///< BFloat16; overwritten
};
void round_to_compute(const tensor::Stream& stream, const RoundToCompute& args);

}  // namespace plenum::kernels
