#pragma once

#include <cstddef>
#include <vector>

#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::memory {

/// A rank's place among those that hold a stage of a schedule.
struct Holder {
  Holder(const schedule::Schedule& schedule, schedule::Rank rank, schedule::StageId stage);

  std::size_t index = 0;
  std::size_t count = 0;
};

/// The layers whose parameters a rank holds, one range for each of its stages; none where it has no stage.
std::vector<describe::LayerRange> held_layers(const schedule::Schedule& schedule, schedule::Rank rank);

/// What a rank updates of the table of the layers it holds: all of it, or its shard of the only stage.
/// Buckets are then the ranges of layers that the schedule reduces by themselves.
describe::ParameterShard schedule_shard(const describe::ParameterTable& table,
                                        const schedule::Schedule& schedule, schedule::Rank rank);

}  // namespace plenum::memory
