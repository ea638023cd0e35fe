#pragma once

#include <string>

#include "plenum/plan/cluster.h"
#include "plenum/plan/strategy.h"
#include "plenum/train/run_options.h"

namespace plenum::train {

/// The options of a run that is laid out as a strategy says, on this cluster; everything else stays.
RunOptions planned_options(RunOptions options, const plan::Strategy& strategy, const plan::Cluster& cluster);

/// A TOML file with the options that are not as they are by default, which `train --plan` runs.
std::string print_plan_file(RunOptions options, const std::string& comment);

}  // namespace plenum::train
