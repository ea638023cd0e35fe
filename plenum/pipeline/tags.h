#pragma once

#include <cstdint>

#include "plenum/comm/communicator.h"
#include "plenum/schedule/core/action.h"

namespace plenum::pipeline {

/// Names the message of a send; 15 bits of the step tell apart what can be under way at a time.
comm::Tag message_tag(const schedule::Action& send, std::uint64_t step);

/// Equal on ranks that mean the same collective of the same step.
comm::Tag collective_tag(const schedule::Action& action, std::uint64_t step);

}  // namespace plenum::pipeline
