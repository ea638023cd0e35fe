#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "plenum/schedule/core/lifetimes.h"

namespace plenum::schedule {

/// Where everything that belongs to micro-batches lies on one rank: for each kind of tenant a row of slots,
/// as few as the schedule lets be taken at a time in any execution, and the slot of each tenant in each step
/// of training. Messages are among them: what a receive writes and what a send reads (message_tenant).
class RankSlots {
 public:
  /// Of a schedule that check() accepts.
  RankSlots(const EventOrder& order, Rank rank);
  /// Of given lifetimes on a rank whose cycle has `num_steps` steps and the length `cycle_time`.
  RankSlots(std::span<const Lifetime> lifetimes, std::size_t num_steps, std::int64_t cycle_time);

  std::size_t num_slots(TenantKind kind) const { return plans_[static_cast<std::size_t>(kind)].num_slots(); }
  /// The slot, among those of its kind, of a tenant that belongs to that step of training. Throws
  /// InternalError if the schedule has no such tenant.
  std::size_t slot(const Tenant& tenant, std::uint64_t step) const;

 private:
  struct Key {
    Tenant tenant;
    std::uint32_t step = 0;  ///< of the cycle
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  std::size_t num_steps_ = 1;
  std::array<SlotPlan, kNumTenantKinds> plans_;
  std::unordered_map<Key, std::size_t, KeyHash> indices_;  ///< among the intervals of its kind
};

}  // namespace plenum::schedule
