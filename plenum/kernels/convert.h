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

/// The other way round: every element as it is, in float32. On the GPU.
struct WidenFromCompute {
  tensor::ConstTensorView x_N;  ///< BFloat16
  tensor::TensorView y_N;       ///< Float32; overwritten
};
void widen_from_compute(const tensor::Stream& stream, const WidenFromCompute& args);

}  // namespace plenum::kernels
