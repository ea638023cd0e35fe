#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// All forwards, then all backwards in the same order (Huang et al., 2019). Bubble (D-1)(F+B); every
/// micro-batch's activations are kept at once.
Schedule generate_gpipe(const GeneratorOptions& options);

}  // namespace plenum::schedule
