#pragma once

#include "plenum/kernels/soap_step.h"

namespace plenum::kernels::cuda {

void soap_step(const tensor::Stream& stream, const SoapStep& args);

}  // namespace plenum::kernels::cuda
