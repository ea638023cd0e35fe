#pragma once

#include <vector>

#include "plenum/pipeline/executor.h"
#include "plenum/train/processes.h"

namespace plenum::train {

/// Completes what one process recorded of a cycle, and which micro-batches of its rank are empty, with what
/// all others did, on the clock of the first process. Called by all of them. `counts`: whether this process
/// stands for its rank of the schedule.
void add_other_processes(const Processes& processes, bool counts, pipeline::MeasuredCycle& cycle,
                         std::vector<bool>& are_empty);

}  // namespace plenum::train
