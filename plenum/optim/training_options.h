#pragma once

#include "plenum/base/options.h"
#include "plenum/optim/learning_rate.h"
#include "plenum/optim/optimizer.h"

namespace plenum::optim {

/// How weights are updated and how fast: the section "optimizer" of a run.
struct TrainingOptions {
  OptimizerOptions optimizer;
  LearningRateOptions learning_rate;

  base::OptionTable table();

  /// Throws UserError for settings that contradict each other.
  void check() const;
};

}  // namespace plenum::optim
