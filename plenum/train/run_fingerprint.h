#pragma once

#include "plenum/control/fingerprint.h"
#include "plenum/train/run_options.h"
#include "plenum/train/training_data.h"

namespace plenum::train {

/// What must be the same in all processes of a run: every option that concerns more than one of them, the
/// dataset, the packing plan, the weights that a new run begins with and the program. Reads what it needs of
/// them.
control::Fingerprint fingerprint_of(const RunOptions& settled, const TrainingData& data);

}  // namespace plenum::train
