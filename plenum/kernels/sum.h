#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Adds the sum of all elements to a number, in double precision and in an order that depends on N alone.
struct AddSum {
  tensor::ConstTensorView x_N;  ///< Float32
  tensor::TensorView sum_1;     ///< Float64; added to
};
void add_sum(const tensor::Stream& stream, const AddSum& args);

}  // namespace plenum::kernels
