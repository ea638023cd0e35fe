#pragma once

#include <memory>

#include "plenum/comm/communicator.h"

namespace plenum::comm::local {

class WorldState;

/// Ranks that are threads of this process and share its memory.
///
/// Collectives read and write the members' buffers directly: once all members have come, whoever waits does
/// part of the work, and no lock is held meanwhile. Every element is summed by one thread in the order of the
/// members, so that a sum can be told beforehand to the bit. A message is copied when it is sent, or straight
/// to its destination if that is known, so sends are complete at once. Progress is made inside wait() and
/// test() of any member. Waiting threads sleep, so ranks may outnumber cores. Buffers hold elements that are
/// aligned for their type.
class LocalWorld {
 public:
  explicit LocalWorld(std::size_t num_ranks);
  ~LocalWorld();

  /// The communicator of all ranks, for one of them. It may outlive the world.
  std::unique_ptr<Communicator> communicator(Rank rank);

 private:
  std::size_t num_ranks_;
  std::shared_ptr<WorldState> state_;
};

}  // namespace plenum::comm::local
