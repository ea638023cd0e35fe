#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/plan/step_breakdown.h"
#include "plenum/trace/timeline.h"

namespace plenum::train {

/// A step as it was predicted and as it was measured, for whoever looks at the run later.
struct StepRecord {
  std::uint64_t step = 0;
  std::string schedule;
  /// What the prediction is made of: how fast the machine is, or how long earlier steps took.
  enum class Source : std::uint8_t { Machine, EarlierSteps } source = Source::Machine;
  trace::Timeline predicted;
  trace::Timeline measured;                    ///< of the same spans
  std::vector<plan::StepBreakdown> breakdown;  ///< of each rank, predicted; may be empty
  double waited_seconds = 0;                   ///< of the first process for the step's data, before
};

/// As JSON with the keys of docs/formats.md, with the first ranks of a step that has too many actions for
/// anybody to look at.
std::string step_record_json(const StepRecord& record);

/// Seconds by what they are spent on.
nlohmann::ordered_json breakdown_json(const plan::StepBreakdown& breakdown);

}  // namespace plenum::train
