#pragma once

#include <array>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Adds the sums over the rows of a matrix to vectors: the gradient of a bias, from that of the map's output.
/// Columns are three parts of the width D, each with a vector of its own. A part whose vector is left out is
/// not read. Every sum has one owner and an order that depends on the shape alone. Takes the scratch of
/// linear maps.
struct AddColumnSums {
  tensor::ConstTensorView x_T3D;              ///< an activation
  std::array<tensor::TensorView, 3> sum_3_D;  ///< Float32; added to; may be left out
};
void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args);

}  // namespace plenum::kernels
