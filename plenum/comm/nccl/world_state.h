#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "plenum/comm/abort_state.h"
#include "plenum/comm/nccl/nccl_world.h"

namespace plenum::comm::nccl {

class NcclCommunicator;

/// What all communicators of a world have in common: whether it was aborted, and which have to be ended then.
class WorldState {
 public:
  explicit WorldState(NcclWorld::OnAbort on_abort) : on_abort_(std::move(on_abort)) {}

  const AbortState& abort_state() const { return abort_; }
  /// By this process, which the others are told; the first call counts.
  void abort_all(Rank failed_rank, std::string_view reason);
  /// By another process.
  void abort_here(Rank failed_rank, std::string_view reason);

  void add(NcclCommunicator& communicator);
  void remove(NcclCommunicator& communicator);

 private:
  AbortState abort_;
  NcclWorld::OnAbort on_abort_;
  std::mutex mutex_;
  std::vector<NcclCommunicator*> open_;
};

}  // namespace plenum::comm::nccl
