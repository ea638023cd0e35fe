#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/trace/timeline.h"

namespace plenum::report {

/// Something that a rank did in a step, in seconds from the step's beginning.
struct StepSpan {
  std::uint32_t track = 0;
  double begin = 0;
  double end = 0;
  trace::Category category = trace::Category::Other;
  std::string label;
  std::int32_t micro_batch = -1;  ///< -1: belongs to none
};

/// A row of spans: a lane of a rank.
struct StepTrack {
  std::uint32_t rank = 0;
  std::string lane;
};

struct StepTimeline {
  double step_seconds = 0;
  double length_seconds = 0;
  std::vector<StepSpan> spans;
};

/// A step as it was predicted and as it was measured: a run's step.json.
struct StepTimes {
  std::uint64_t step = 0;
  std::string schedule;
  std::string prediction;     ///< what it is made of: "machine" or "earlier steps"
  std::size_t num_ranks = 0;  ///< of the step; tracks may be of fewer
  double waited_seconds = 0;
  std::vector<StepTrack> tracks;
  StepTimeline predicted;
  StepTimeline measured;
  /// Predicted seconds of a step by what they go to, mean over ranks.
  std::vector<std::pair<std::string, double>> breakdown;
};

/// Nothing for what is no such file.
std::optional<StepTimes> parse_step_times(const nlohmann::json& file);

}  // namespace plenum::report
