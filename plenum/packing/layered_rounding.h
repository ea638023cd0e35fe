#pragma once

#include <array>
#include <cstdint>

#include "plenum/packing/coarse_relaxation.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct LayerOptions {
  CoarseOptions coarse = {};
  /// How much of every activity a layer may make. The less, the more there is to choose from for the next.
  std::array<double, 2> shares = {0.95, 0.7};
  /// With at most this many lengths left, the relaxation is solved with a price for each and rounded.
  std::int64_t few_lengths = 1000;
};

/// Turns a coarse relaxation into whole packs, layer by layer: makes packs like its patterns as long as they
/// waste next to nothing, relaxes what remains coarsely again, and so on until few lengths remain. Of layers
/// of different thickness it keeps the one whose packs and relaxed remainder promise the fewest packs. After
/// `layers_deadline` no further layer is begun.
PackingPlan round_in_layers(const PackingProblem& problem, Relaxation relaxation, const LayerOptions& options,
                            const Deadline& layers_deadline, const Deadline& deadline);

}  // namespace plenum::packing
