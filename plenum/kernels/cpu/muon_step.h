#pragma once

#include "plenum/kernels/muon_step.h"

namespace plenum::kernels::cpu {

void muon_step(const tensor::Stream& stream, const MuonStep& args);
void muon_directions(const tensor::Stream& stream, const MuonDirections& args);
void muon_weights(const tensor::Stream& stream, const MuonWeights& args);

}  // namespace plenum::kernels::cpu
