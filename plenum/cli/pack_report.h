#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/packing/bounds.h"
#include "plenum/packing/plan.h"

namespace plenum::cli {

/// One plan for one problem, as the report shows it.
struct PackReportRow {
  std::string algorithm;
  const packing::PackingPlan* plan = nullptr;
  packing::LowerBound bound;  ///< for plans of its depth
  double seconds = 0;
};

/// The object that --json prints for a plan. Keys are stable: algorithm, sequences, tokens, capacity, depth,
/// packs, efficiency, lower_bound, gap_packs, seconds.
std::string pack_report_json(const packing::PackingProblem& problem, const PackReportRow& row);

/// What is packed, as three lines and a plot.
std::string describe_problem(const packing::PackingProblem& problem, const std::string& source);

/// All plans side by side, with the best bounds known above them, one for every depth of the plans.
std::string pack_report_table(const packing::PackingProblem& problem, const std::vector<PackReportRow>& rows);

}  // namespace plenum::cli
