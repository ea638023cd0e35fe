#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// Two pipelines in opposite directions over the same ranks (Li & Hoefler, 2021): position p holds stages p
/// and D-1-p; the first half of the micro-batches (the larger one of an odd number) goes down, the other half
/// up. D must be even.
///
/// For N = D the step takes N F + (N+D-2) B whenever B >= F. For greater multiples of D it takes
/// (N+D/2-1)(F+B) where B = 2 F, the least that is possible with this placement: the ranks in the middle
/// begin at (D/2-1) F and end (D/2-1) B before the end. A rank keeps at most D micro-batches for N <= D, and
/// less than 3/2 D beyond.
Schedule generate_chimera(const GeneratorOptions& options);

}  // namespace plenum::schedule
