#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// A stage runs as many forwards ahead as there are stages behind it, then one forward and one backward in
/// turn (Narayanan et al., 2021: PipeDream-flush). GPipe's bubble, but stage s keeps at most D - s
/// micro-batches.
Schedule generate_one_forward_one_backward(const GeneratorOptions& options);

}  // namespace plenum::schedule
