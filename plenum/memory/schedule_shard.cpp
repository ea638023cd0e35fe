#include "plenum/memory/schedule_shard.h"

#include <vector>

namespace plenum::memory {

Holder::Holder(const schedule::Schedule& schedule, schedule::Rank rank) {
  for (std::size_t i = 0; i < schedule.ranks.size(); ++i) {
    if (schedule.ranks[i].stages.empty()) continue;
    if (i < rank.index()) ++index;
    ++count;
  }
}

describe::ParameterShard schedule_shard(const describe::ParameterTable& table,
                                        const schedule::Schedule& schedule, schedule::Rank rank) {
  const Holder holder(schedule, rank);
  if (!schedule::is_sharded(schedule.problem) || holder.count == 1) return describe::ParameterShard(table);
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
