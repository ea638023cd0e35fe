#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/schedule/core/event_order.h"
#include "plenum/schedule/core/slot_plan.h"
#include "plenum/schedule/core/tenants.h"

namespace plenum::schedule {

/// How long a tenant occupies its memory, in every execution.
///
/// Time is the progress of the rank's compute lane: its action i begins at 2i and ends at 2i + 1, counted
/// from the beginning of the cycle and on through those that follow. `begin` is the last such point that has
/// surely passed when the first byte may come; `end` is the first at which surely nobody reads any longer. So
/// one tenant may follow another in a slot if it begins at the other's end or later.
///
/// Nothing is lost by looking at one lane: whatever is written by a message is read by the compute lane
/// alone, and whatever leaves as a message is written by it.
struct Lifetime {
  Tenant tenant;
  std::uint32_t step = 0;  ///< of the cycle: whose values it belongs to
  Interval time;
};

/// Until when it counts what a layer keeps.
enum class KeptFor : std::uint8_t { Backward, Curvature };

/// Of all that the compute lane or messages write on a rank, by step of the cycle, micro-batch and stage. A
/// receive writes from when it is posted, which may be before its forward's turn; a message that is sent is
/// read until it has come to its receiver.
std::vector<Lifetime> lifetimes(const Dataflow& dataflow, Rank rank, const MessageBounds& messages);

/// Of what layers keep (under full recomputation: recompute) alone, which the compute lane decides.
std::vector<Lifetime> kept_lifetimes(const Dataflow& dataflow, Rank rank, KeptFor kept_for);

/// The cycle of a rank in the time of its lifetimes; 2 if it computes nothing.
std::int64_t cycle_time(const Schedule& schedule, Rank rank);

/// What a stage has of a micro-batch in a step as one: from the first of its tenants to the last. The
/// lifetimes must be in the order in which they are given above; the whole is named as what the stage's first
/// layer keeps.
std::vector<Lifetime> by_micro_batch(std::span<const Lifetime> lifetimes, const StageLayers& layers);

/// The most of them that lie there at a time.
std::size_t most_at_once(std::span<const Lifetime> lifetimes, std::int64_t cycle_time);

}  // namespace plenum::schedule
