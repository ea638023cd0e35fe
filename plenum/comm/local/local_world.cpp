#include "plenum/comm/local/local_world.h"

#include "plenum/base/check.h"
#include "plenum/comm/local/local_communicator.h"

namespace plenum::comm::local {

LocalWorld::LocalWorld(std::size_t num_ranks)
    : num_ranks_(num_ranks), state_(std::make_shared<WorldState>(num_ranks)) {}

LocalWorld::~LocalWorld() = default;

std::unique_ptr<Communicator> LocalWorld::communicator(Rank rank) {
  base::check(rank.index() < num_ranks_, "there is no such rank: {} of {}", rank.value, num_ranks_);
  return std::make_unique<LocalCommunicator>(state_, state_->all(), rank.index());
}

}  // namespace plenum::comm::local
