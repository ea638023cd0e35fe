#pragma once

#include "plenum/packing/column_generation.h"
#include "plenum/packing/pack_builder.h"

namespace plenum::packing {

struct SimilarPacksOptions {
  double share = 0.95;     ///< how much of every activity is made
  double max_loss = 1e-6;  ///< a pack worth less than 1 - max_loss at the duals is not made
};

/// Makes packs that are like the patterns of a relaxation with prices at few lengths: every slot takes a
/// sequence of about its length, deviations cancel out, and one slot takes the longest that still fits. A
/// pattern is left when what remains makes no pack like it that is worth enough, so few packs are wasted.
void make_similar_packs(const PackingProblem& problem, const Relaxation& relaxation,
                        const SimilarPacksOptions& options, PackBuilder& builder);

}  // namespace plenum::packing
