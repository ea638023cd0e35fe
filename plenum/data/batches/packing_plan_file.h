#pragma once

#include <string>

#include "plenum/packing/plan.h"

namespace plenum::data {

/// A plan as JSON, one pattern per line:
/// `{"capacity": 512, "depth": 3, "patterns": [{"lengths": [400, 100, 12], "count": 7}, ...]}`.
std::string print_packing_plan(const packing::PackingPlan& plan);

/// Reads a plan and makes sure that each pattern by itself keeps to the plan's capacity and depth. Whether it
/// packs a given histogram is packing::find_fault's question. Throws UserError naming file and pattern.
packing::PackingPlan read_packing_plan(const std::string& path);

}  // namespace plenum::data
