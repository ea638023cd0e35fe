#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "plenum/comm/mpi/collective.h"
#include "plenum/comm/mpi/group_lines.h"
#include "plenum/comm/mpi/postbox.h"

namespace plenum::comm::mpi {

/// All that one process has under way with one group of ranks. Any thread may move it on.
class Channel {
 public:
  Channel(std::shared_ptr<WorldState> world, std::vector<Rank> ranks, std::size_t index, int context,
          MPI_Comm library_group);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  WorldState& world() { return *world_; }
  const std::shared_ptr<WorldState>& shared_world() const { return world_; }
  const GroupLines& lines() const { return lines_; }

  /// These throw Aborted once the world was aborted.
  std::shared_ptr<Collective> start(Contribution contribution);
  std::shared_ptr<Task> send(std::size_t to, Tag tag, ConstElements elements);
  std::shared_ptr<ReceiveTask> receive(std::size_t from, Tag tag, Elements destination);
  /// The same for what the members of a group to be say to each other.
  std::shared_ptr<Task> send_invitation(std::size_t to, Tag tag, ConstElements elements);
  std::shared_ptr<Task> receive_invitation(std::size_t from, Tag tag, Elements destination);

  /// Gives a receive up; false if its message is on its way already.
  bool withdraw(ReceiveTask& receive);

  /// Moves everything on; true if something changed.
  bool drive();
  /// The same, unless another thread is at it or there is nothing to do.
  bool try_drive();

  /// Moves this and all else on until the task is done; throws what the task or an abort says.
  void wait(const Task& task);

 private:
  /// These are called by a thread that has the lock and an MpiCall.
  bool drive_locked();
  bool move_on();

  std::shared_ptr<WorldState> world_;
  GroupLines lines_;
  std::mutex mutex_;
  CollectiveRoom room_;
  Postbox messages_;
  Postbox invitations_;
  std::deque<std::shared_ptr<Collective>> collectives_;  ///< in the order of all members
  std::atomic<bool> is_exchanging_ = false;              ///< all members have come to the first of them
};

}  // namespace plenum::comm::mpi
