#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// One forward, one backward over virtual stages: each of the D ranks of a pipeline holds v = num_chunks
/// stages, stage = chunk * D + position, and a micro-batch passes the row of ranks v times (Narayanan et al.,
/// 2021). With F and B the times of a whole rank, the bubble is (D-1)(F+B)/v for any N >= D. Micro-batches go
/// through the chunks in groups of G >= D, as even as can be, so that N need not be a multiple of D. Position
/// p keeps at most min(Nv, 2(D-1-p) + (v-1)G + 1) chunk activations; with v = 1, those of 1F1B.
Schedule generate_interleaved(const GeneratorOptions& options);

}  // namespace plenum::schedule
