#pragma once

#include <cstddef>
#include <vector>

#include "plenum/schedule/core/lifetimes.h"

namespace plenum::schedule {

/// The most activations that lie on a rank at a time.
struct ActivationPeak {
  std::size_t layers = 0;         ///< one layer of one micro-batch counts 1
  std::size_t micro_batches = 0;  ///< of which something is kept; each stage of the rank counts its own
};

/// For each rank, in the steady state. A layer of a micro-batch counts from its forward (under recomputation:
/// from its recomputation) to the end of its backward or weight gradient; kept for curvature, also to the
/// last curvature action that reads its activations or gradients, which may run steps later.
std::vector<ActivationPeak> activation_peaks(const Dataflow& dataflow, KeptFor kept_for);

}  // namespace plenum::schedule
