#include "plenum/schedule/core/rank_slots.h"

#include "plenum/base/check.h"

namespace plenum::schedule {

RankSlots::RankSlots(const EventOrder& order, Rank rank)
    : RankSlots(lifetimes(order.dataflow(), rank, order.message_bounds(rank)),
                order.dataflow().schedule().num_steps(), cycle_time(order.dataflow().schedule(), rank)) {}

RankSlots::RankSlots(std::span<const Lifetime> lifetimes, std::size_t num_steps, std::int64_t cycle_time)
    : num_steps_(num_steps) {
  std::array<std::vector<Interval>, kNumTenantKinds> times;
  for (const Lifetime& life : lifetimes) {
    std::vector<Interval>& of_kind = times[static_cast<std::size_t>(life.tenant.kind)];
    indices_.emplace(Key{life.tenant, life.step}, of_kind.size());
    of_kind.push_back(life.time);
  }
  for (std::size_t kind = 0; kind < kNumTenantKinds; ++kind) {
    plans_[kind] = SlotPlan(times[kind], cycle_time);
  }
}

std::size_t RankSlots::slot(const Tenant& tenant, std::uint64_t step) const {
  const auto found = indices_.find({tenant, static_cast<std::uint32_t>(step % num_steps_)});
  base::check(found != indices_.end(), "the schedule has no such tenant: kind {} of stage {}, micro-batch {}",
              static_cast<int>(tenant.kind), tenant.stage.value, tenant.micro_batch.value);
  return plans_[static_cast<std::size_t>(tenant.kind)].slot(found->second, step / num_steps_);
}

std::size_t RankSlots::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = std::uint64_t{key.tenant.micro_batch.value} | std::uint64_t{key.step} << 32;
  hash *= 0x9E3779B97F4A7C15u;
  hash ^= static_cast<std::uint64_t>(key.tenant.kind) | std::uint64_t{key.tenant.stage.value} << 8 |
          std::uint64_t{key.tenant.layer.value} << 24;
  hash *= 0xD6E8FEB86659FD93u;
  return hash ^ hash >> 32;
}

}  // namespace plenum::schedule
