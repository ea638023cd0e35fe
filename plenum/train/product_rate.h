#pragma once

#include "plenum/train/device_memory.h"
#include "plenum/train/run_plan.h"

namespace plenum::train {

/// What matrix products reach on what a run is computed on, in FLOP/s, measured for a third of a second; 0
/// where a GPU has no room left to measure it.
double measure_product_rate(const RunPlan& plan, const DeviceMemory& device_memory);

}  // namespace plenum::train
