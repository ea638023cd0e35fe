#include "plenum/comm/nccl/world_state.h"

#include "plenum/comm/nccl/nccl_communicator.h"

namespace plenum::comm::nccl {

void WorldState::abort_all(Rank failed_rank, std::string_view reason) {
  if (abort_.is_aborted()) return;
  abort_here(failed_rank, reason);
  if (on_abort_) on_abort_(failed_rank, reason);
}

void WorldState::abort_here(Rank failed_rank, std::string_view reason) {
  if (!abort_.abort_all(failed_rank, reason)) return;
  const std::lock_guard lock(mutex_);
  for (NcclCommunicator* communicator : open_) communicator->end();
}

void WorldState::add(NcclCommunicator& communicator) {
  const std::lock_guard lock(mutex_);
  open_.push_back(&communicator);
}

void WorldState::remove(NcclCommunicator& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase(open_, &communicator);
}

}  // namespace plenum::comm::nccl
