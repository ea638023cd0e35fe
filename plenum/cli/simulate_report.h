#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/simulate/simulate.h"

namespace plenum::cli {

/// A schedule with all that was found out about it.
struct SimulatedSchedule {
  schedule::Schedule schedule = {};
  std::size_t num_stages = 0;         ///< ranks that a micro-batch passes
  std::size_t num_micro_batches = 0;  ///< of one replica
  schedule::CheckResult check = {};
  std::optional<schedule::Simulation> simulation = std::nullopt;  ///< nothing if check() refused the schedule
  std::optional<schedule::FillResult> fill = std::nullopt;        ///< the schedule within it is left empty
  std::optional<schedule::Simulation> unfilled = std::nullopt;    ///< of the schedule before it was filled
};

/// The number of ranks that the first micro-batch passes on its way through the model.
std::size_t pipeline_depth(const schedule::Schedule& schedule);

/// One object with stable keys.
std::string simulate_report_json(const SimulatedSchedule& result);

/// A few lines in words, with the drawing left out.
std::string simulate_report_text(const SimulatedSchedule& result);

/// A line for each schedule.
std::string simulate_report_table(const std::vector<SimulatedSchedule>& results);

}  // namespace plenum::cli
