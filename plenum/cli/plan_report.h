#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plenum/plan/cluster.h"
#include "plenum/plan/memory_explanation.h"
#include "plenum/plan/search.h"
#include "plenum/plan/step_breakdown.h"
#include "plenum/plan/what_if.h"

namespace plenum::cli {

/// What a change of the cluster makes of the best plan.
struct WhatIfResult {
  plan::WhatIf change;
  std::optional<double> same_seconds =
      {};                               ///< of the plan that was best; nothing if it does not fit any more
  std::optional<plan::Plan> best = {};  ///< of all there are then; nothing if none fits
};

/// All that is reported of a search.
struct PlanReport {
  std::string model;
  std::string data;
  const plan::Cluster* cluster = nullptr;
  std::size_t num_ranks = 1;
  double tokens_per_step = 0;
  double flops_per_step = 0;  ///< of forward and backward, without padding and recomputation
  std::optional<double> price_per_device_hour;
  std::size_t num_shown = 10;
  double seconds = 0;  ///< that planning took
  plan::SearchResult result;
  std::vector<std::string> assumed = {};              ///< operations of which the cluster's file says nothing
  std::vector<plan::MatrixOverhead> overheads = {};   ///< of each plan that is shown, where there are any
  std::optional<plan::StepBreakdown> breakdown = {};  ///< of the best
  std::optional<plan::MemoryExplanation> memory = {};  ///< the same
  std::vector<WhatIfResult> what_ifs = {};
};

std::string plan_report_text(const PlanReport& report, int width);
std::string plan_report_json(const PlanReport& report);

/// What a plan file begins with: lines of comment.
std::string plan_file_comment(const PlanReport& report, const plan::Plan& plan);

}  // namespace plenum::cli
