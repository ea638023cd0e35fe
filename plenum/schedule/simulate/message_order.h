#pragma once

#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::schedule {

/// Puts the messages of every pipeline lane into the order in which they are sent when none waits for
/// another: all lanes then keep to one order of all messages, so none of them waits for ever, and where
/// messages take no time none waits at all. False, and nothing is changed, if the schedule does not run in
/// any order of these lanes. Sends and receives must match.
bool order_messages(Schedule& schedule, const CostModel& costs);

/// For a backward that takes twice as long as a forward, quick messages, and layers that are all alike.
bool order_messages(Schedule& schedule);

}  // namespace plenum::schedule
