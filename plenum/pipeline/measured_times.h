#pragma once

#include <memory>
#include <span>

#include "plenum/pipeline/executor.h"

namespace plenum::pipeline {

/// Puts the recorded times of the ranks of this process, and those that `complete` adds, on one clock that
/// begins with the cycle, and lets receives and collectives begin when the last of those they need was there:
/// what came before was waiting.
MeasuredCycle measure(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow,
                      std::span<const std::unique_ptr<RankExecutor>> ranks, std::uint64_t first_step,
                      CompleteCycle complete);

}  // namespace plenum::pipeline
