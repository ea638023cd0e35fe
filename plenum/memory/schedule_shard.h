#pragma once

#include <cstddef>

#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::memory {

/// A rank's place among those that hold the only stage of a schedule.
struct Holder {
  Holder(const schedule::Schedule& schedule, schedule::Rank rank);

  std::size_t index = 0;
  std::size_t count = 0;
};

/// What a rank of a schedule of one stage updates. Buckets are the ranges of layers that the schedule
/// reduces by themselves.
describe::ParameterShard schedule_shard(const describe::ParameterTable& table,
                                        const schedule::Schedule& schedule, schedule::Rank rank);

}  // namespace plenum::memory
