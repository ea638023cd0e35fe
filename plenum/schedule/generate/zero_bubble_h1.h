#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// Zero-bubble H1 (Qi et al., 2023): one forward, one backward, with the backward cut into the input gradient
/// I, which the stage before waits for, and the weight gradient W, which stage s runs s micro-batches later.
/// Bubble (D-1)(F+I-W) for N >= D where W is not longer than F and I; every stage keeps at most min(N, D)
/// micro-batches from their F to their W, what the first stage of 1F1B keeps.
Schedule generate_zero_bubble_h1(const GeneratorOptions& options);

}  // namespace plenum::schedule
