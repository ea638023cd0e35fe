#pragma once

#include "plenum/kernels/muon_step.h"

namespace plenum::kernels::cpu {

void muon_step(const tensor::Stream& stream, const MuonStep& args);

}  // namespace plenum::kernels::cpu
