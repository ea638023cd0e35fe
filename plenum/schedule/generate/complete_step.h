#pragma once

#include <string>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// The part of a step that generators decide: who holds which stages, and in which order each rank computes.
struct StepDraft {
  std::string name;
  Problem problem;
  std::size_t num_buckets = 1;               ///< parts of a stage whose gradients are reduced apart
  std::vector<std::vector<StageId>> stages;  ///< of each rank
  /// Of each rank: forwards, backwards or their halves, recomputations, each over a whole stage.
  std::vector<std::vector<Action>> compute;
};

/// Adds what follows from it: messages between stages in an order that needs no buffers (order_messages());
/// reduction of gradients bucket by bucket as the last backward of a stage (cut at the borders of
/// buckets) completes them, or every backward where gradients are sharded, where a stage has several holders;
/// the tied parameter's reduction, or that of its halves; squares of the gradient, agreement, updates;
/// gathering of parameters, and sums of tensors' norms, where they are sharded. Gives a schedule of one step.
/// Throws UserError where parameters are to be sharded and the order of computations does not let them be
/// gathered in turn.
Schedule complete_step(StepDraft draft);

}  // namespace plenum::schedule
