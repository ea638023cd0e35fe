#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plenum/schedule/simulate/replay.h"

namespace plenum::schedule {

/// When the actions of a step run.
struct GatheredStep {
  std::vector<RankTimes> times;
  /// Of each rank, lane and action, its place in an order in which all of them could run one after the other:
  /// by time, and those that take none by what they wait for. The ends of a message have one place, and so
  /// have the members of a collective.
  std::vector<std::array<std::vector<std::uint32_t>, kNumLanes>> order;
};

/// Where the idle time of a step lies.
enum class IdleTime : std::uint8_t {
  Gathered,   ///< in few long gaps
  BehindWork  ///< as far behind as can be: everything runs as early as in the replay
};

/// Gathered: delays computations that nothing waits for until they end where the next one begins, so that
/// idle time lies in few long gaps instead of many short ones. Takes and gives the times of a one-step
/// schedule whose step repeats every `step_seconds`; no lane changes its order and the step does not get
/// longer. Ties with a step before are kept where the step itself makes the value.
GatheredStep gather_gaps(const Dataflow& dataflow, const std::vector<RankTimes>& times, double step_seconds,
                         IdleTime idle = IdleTime::Gathered);

}  // namespace plenum::schedule
