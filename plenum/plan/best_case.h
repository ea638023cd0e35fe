#pragma once

#include "plenum/plan/cluster.h"

namespace plenum::plan {

/// The cluster as if every operation of its device came as close to its limit as the best of its kind.
Cluster at_best(Cluster cluster);

}  // namespace plenum::plan
