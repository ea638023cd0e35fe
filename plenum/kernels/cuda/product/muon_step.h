#pragma once

#include "plenum/kernels/muon_step.h"

namespace plenum::kernels::cuda {

void muon_step(const tensor::Stream& stream, const MuonStep& args);

}  // namespace plenum::kernels::cuda
