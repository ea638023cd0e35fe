#pragma once

#include <memory>

#include "plenum/comm/completion.h"
#include "plenum/comm/local/queued_exchange.h"
#include "plenum/comm/local/world_state.h"

namespace plenum::comm::local {

/// One member's end of what goes into a queue of a device.
struct QueuedMember {
  std::shared_ptr<WorldState> world;
  std::shared_ptr<Group> group;
  std::size_t index = 0;
  const tensor::WorkQueue* queue = nullptr;  ///< borrowed

  QueuedExchange& exchange() const { return group->queued(); }
};

/// Complete once the receiver's copy is in its queue; what the sender puts into its own afterwards waits for
/// it.
Completion start_queued_send(const QueuedMember& own, std::size_t to, Tag tag, ConstElements elements);
/// Complete once the copy is in the queue.
Completion start_queued_receive(const QueuedMember& own, std::size_t from, Tag tag, Elements elements);
/// Complete once all members' parts are in their queues; what comes behind waits for them.
Completion start_queued_collective(const QueuedMember& own, std::uint64_t sequence,
                                   Contribution contribution);

}  // namespace plenum::comm::local
