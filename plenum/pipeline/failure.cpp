#include "plenum/pipeline/failure.h"

#include <utility>

#include <fmt/format.h>

namespace plenum::pipeline {

ExecutionError::ExecutionError(Failure failure)
    : std::runtime_error(fmt::format("rank {}, {}, step {}, {}: {}", failure.rank.value,
                                     schedule::lane_name(failure.lane), failure.step, failure.action,
                                     failure.message)),
      failure_(std::move(failure)) {}

}  // namespace plenum::pipeline
