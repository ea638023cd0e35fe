#pragma once

#include <cstdint>

#include "plenum/packing/coarse_relaxation.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct LayerOptions {
  CoarseOptions coarse = {};
  /// With at most this many lengths left, the relaxation is solved with a price for each and rounded.
  std::int64_t few_lengths = 1000;
};

/// Turns a coarse relaxation into whole packs, layer by layer: makes packs like its patterns as long as they
/// waste next to nothing, relaxes what remains coarsely again, and so on until few lengths remain. Of layers
/// of different thickness it keeps the one whose packs and relaxed remainder promise the fewest packs.
PackingPlan round_in_layers(const PackingProblem& problem, Relaxation relaxation, const LayerOptions& options,
                            const Deadline& deadline);

}  // namespace plenum::packing
