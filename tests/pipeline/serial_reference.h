#pragma once

#include <cstdint>
#include <vector>

#include "tests/pipeline/toy_model.h"

namespace plenum::pipeline {

/// What training the toy model gives, by plain loops over the whole global batch.
struct SerialResult {
  std::vector<std::vector<Values>> parameters;              ///< [layer][parameter], after the last step
  std::vector<std::vector<Values>> gradients;               ///< of the last step, preconditioned, unclipped
  std::vector<double> losses;                               ///< of each step
  std::vector<std::vector<std::vector<Values>>> curvature;  ///< [step][layer][map]: A, then B
};

/// Trains for some steps as the schedule means it, but without it: no ranks, no stages, no micro-batches, no
/// order. Only what the problem asks for and how old the inverses are is read from the schedule. Results of
/// steps are counted from `first_step`, before which there is nothing.
SerialResult train_serially(const schedule::Schedule& schedule, std::uint64_t num_steps,
                            std::uint64_t first_step = 0);

}  // namespace plenum::pipeline
