#pragma once

#include "plenum/schedule/core/action.h"

namespace plenum::schedule {

/// How long actions take.
class CostModel {
 public:
  virtual ~CostModel() = default;

  /// The time for which an action holds its lane, in seconds, not negative. For a send: the time that its
  /// message holds the wire, for which the lane does not wait. A receive takes no time of its own; it waits
  /// for its message.
  virtual double seconds(Rank rank, const Action& action) const = 0;

  /// The time between the end of a send and the arrival of its message.
  virtual double latency_seconds(Rank from, Rank to) const = 0;
};

}  // namespace plenum::schedule
