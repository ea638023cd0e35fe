#pragma once

#include "plenum/schedule/fill/fill.h"

namespace plenum::schedule {

/// fill() in the mode FillMode::Fresh.
FillResult fill_fresh(const Schedule& base, const Filler& filler, const CostModel& costs,
                      const FillOptions& options);

}  // namespace plenum::schedule
