#pragma once

#include "plenum/kernels/cuda/product/matmul.h"

namespace plenum::kernels::cuda {

/// The same as matmul() by a simple kernel, for the odd sizes that the library refuses: rows that do not
/// begin at multiples of 16 bytes with a bias, for one. Right, not fast.
void plain_matmul(const tensor::Stream& stream, const Matmul& args);

}  // namespace plenum::kernels::cuda
