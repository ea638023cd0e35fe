#include "plenum/memory/schedule_shard.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::memory {

Holder::Holder(const schedule::Schedule& schedule, schedule::Rank rank, schedule::StageId stage) {
  for (std::size_t i = 0; i < schedule.ranks.size(); ++i) {
    const std::vector<schedule::StageId>& held = schedule.ranks[i].stages;
    if (std::ranges::find(held, stage) == held.end()) continue;
    if (i < rank.index()) ++index;
    ++count;
  }
}

std::vector<describe::LayerRange> held_layers(const schedule::Schedule& schedule, schedule::Rank rank) {
  const schedule::StageLayers layers(schedule.problem);
  std::vector<describe::LayerRange> held;
  for (const schedule::StageId stage : schedule.ranks[rank.index()].stages)
    held.emplace_back(layers.first(stage), layers.end(stage));
  return held;
}

describe::ParameterShard schedule_shard(const describe::ParameterTable& table,
                                        const schedule::Schedule& schedule, schedule::Rank rank) {
  if (!schedule::is_sharded(schedule.problem)) return describe::ParameterShard(table);
  base::check(schedule.num_stages() == 1, "a shard is of one stage: there are {}", schedule.num_stages());
  const Holder holder(schedule, rank, {});
  if (holder.count == 1) return describe::ParameterShard(table);
  std::vector<describe::ParameterShard::LayerRange> buckets;
  for (const schedule::Action& action :
       schedule.ranks[rank.index()].lane(schedule::Lane::DataParallel).step(0)) {
    const bool is_first_round =
        action.type == schedule::ActionType::ReduceScatterRound && action.micro_batch.value == 0;
    if (action.type == schedule::ActionType::ReduceScatterGradient || is_first_round)
      buckets.emplace_back(action.first_layer, action.end_layer);
  }
  using TiedTable = describe::ParameterShard::TiedTable;
  return {table, buckets, holder.index, holder.count,
          schedule.problem.has_tied_halves ? TiedTable::Apart : TiedTable::InItsBucket};
}

}  // namespace plenum::memory
