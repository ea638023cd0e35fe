#pragma once

#include <cstddef>
#include <vector>

#include "plenum/schedule/core/lifetimes.h"

namespace plenum::schedule {

/// For each rank, the most layers whose activations lie there at a time in the steady state. A layer of a
/// micro-batch counts 1 from its forward (under recomputation: from its recomputation) to the end of its
/// backward or weight gradient; kept for curvature, also to the last curvature action that reads its
/// activations or gradients, which may run steps later.
std::vector<std::size_t> activation_peaks(const Dataflow& dataflow, KeptFor kept_for);

}  // namespace plenum::schedule
