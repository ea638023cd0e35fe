#pragma once

#include <string>

#include "plenum/plan/memory_explanation.h"
#include "plenum/plan/search.h"

namespace plenum::cli {

/// What the process of a plan that takes the most takes, and what all take.
std::string memory_text(const plan::Plan& plan);

/// Which rank has what, and whether another cut of a pipeline takes less.
std::string memory_text(const plan::MemoryExplanation& memory);

}  // namespace plenum::cli
