#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// One rank holds the whole model as one stage and accumulates the gradients of its micro-batches, each
/// forward followed by its backward, so that one micro-batch's activations are kept.
Schedule generate_single(const GeneratorOptions& options);

}  // namespace plenum::schedule
