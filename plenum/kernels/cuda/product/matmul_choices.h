#pragma once

#include "plenum/kernels/matmul_choices.h"

namespace plenum::kernels::cuda {

MatmulChoices matmul_choices(const tensor::Stream& stream);
bool use_matmul_choices(const tensor::Stream& stream, const MatmulChoices& choices);

}  // namespace plenum::kernels::cuda
