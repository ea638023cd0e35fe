#pragma once

#include <cstddef>
#include <vector>

#include "plenum/schedule/simulate/cost_model.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::pipeline {

/// The most ranks that a rehearsal runs: each has a few threads.
inline constexpr std::size_t kMostRehearsedRanks = 64;

/// Runs a schedule on this machine in real time, through the executor, with a program whose actions pass as
/// much time as `costs` says and compute nothing. What it measures is what the simulation leaves out:
/// starting, waking and waiting for each other. Gives the times of the last of `num_cycles` cycles, as the
/// executor measured them. Throws UserError for a schedule that is not right or has too many ranks.
std::vector<schedule::RankTimes> rehearse(const schedule::Schedule& schedule,
                                          const schedule::CostModel& costs, std::size_t num_cycles);

}  // namespace plenum::pipeline
