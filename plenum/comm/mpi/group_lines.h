#pragma once

#include <vector>

#include "plenum/comm/mpi/world_state.h"

namespace plenum::comm::mpi {

/// The members of a group and how each is reached.
struct GroupLines {
  WorldState* world = nullptr;
  std::vector<Rank> ranks;
  std::size_t index = 0;  ///< of this process
  int context = 0;

  std::size_t size() const { return ranks.size(); }
  Line line(std::size_t member, Topic topic) const {
    return {.communicator = world->all(),
            .peer = static_cast<int>(ranks[member].value),
            .tag = context * kNumTopics + static_cast<int>(topic)};
  }
  /// The other members, beginning with the next, so that not all begin with the same one.
  std::size_t other(std::size_t distance) const { return (index + distance) % size(); }
  /// The member of whom this one is other(distance).
  std::size_t before(std::size_t distance) const { return (index + size() - distance) % size(); }
  /// The distance at which another member is.
  std::size_t distance_of(std::size_t member) const { return (member + size() - index) % size(); }
};

}  // namespace plenum::comm::mpi
