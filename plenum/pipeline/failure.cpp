#include "plenum/pipeline/failure.h"

#include <utility>

#include <fmt/format.h>

namespace plenum::pipeline {

std::string failure_text(const Failure& failure) {
  return fmt::format("rank {}, {}, step {}, {}: {}", failure.rank.value, schedule::lane_name(failure.lane),
                     failure.step, failure.action, failure.message);
}

ExecutionError::ExecutionError(Failure failure)
    : std::runtime_error(failure_text(failure)), failure_(std::move(failure)) {}

}  // namespace plenum::pipeline
