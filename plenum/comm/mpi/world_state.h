#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <mpi.h>

#include "plenum/comm/abort_state.h"
#include "plenum/comm/mpi/mpi_world.h"
#include "plenum/comm/mpi/patience.h"
#include "plenum/comm/mpi/requests.h"

namespace plenum::comm::mpi {

class Channel;

/// What is said on a channel, each with an MPI tag of its own.
enum class Topic : std::uint8_t {
  Greeting,
  Contribution,
  Result,
  Message,
  MessagePayload,
  Invitation,
  InvitationPayload
};
inline constexpr int kNumTopics = 8;

/// What all communicators of a process have in common: MPI, the channels of its groups, and whether the world
/// was aborted.
class WorldState {
 public:
  /// Initialises MPI.
  explicit WorldState(MpiWorldOptions options);
  /// Meets all ranks and finalizes MPI, unless the world was aborted.
  void finish();

  Rank rank() const { return rank_; }
  std::size_t size() const { return size_; }
  Reduction reduction() const { return options_.reduction; }
  MPI_Comm all() const { return all_; }
  const AbortState& abort_state() const { return abort_; }
  /// A wait that suits this machine.
  Patience patience() const { return Patience(spin_); }

  /// A number for a group that no other group of any rank has. Called by the group's first member.
  int new_context();
  /// The same for a group of all ranks, who all call this and need not talk about it.
  int new_world_context();

  /// Ends all communication of this process; abort_all() also tells on_abort.
  void abort_here(Rank failed_rank, std::string_view reason);
  void abort_all(Rank failed_rank, std::string_view reason);

  void add(const std::shared_ptr<Channel>& channel);
  /// Helps on all channels but one, as far as no other thread does. True if something moved.
  bool drive_others(const Channel& but);

  /// After an abort: returns when no thread calls MPI any more, so that nothing moves in buffers.
  void await_silence() const;

 private:
  friend class MpiCall;

  MpiWorldOptions options_;
  MPI_Comm all_ = MPI_COMM_NULL;
  Rank rank_;
  std::size_t size_ = 0;
  Patience::Spin spin_;
  std::size_t num_contexts_ = 0;  ///< that MPI's tags have room for
  AbortState abort_;
  std::atomic<int> num_callers_ = 0;
  std::atomic<std::size_t> num_led_ = 0;  ///< groups whose first member this rank is
  std::atomic<std::size_t> num_worlds_ = 0;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Channel>> channels_;
};

/// Held by a thread while it calls MPI and works on buffers that are under way.
class MpiCall {
 public:
  /// Throws Aborted once the world was aborted.
  explicit MpiCall(WorldState& world) : world_(world) {
    ++world_.num_callers_;
    if (!world_.abort_.is_aborted()) return;
    --world_.num_callers_;
    world_.abort_.throw_if_aborted();
  }
  ~MpiCall() { --world_.num_callers_; }
  MpiCall(const MpiCall&) = delete;
  MpiCall& operator=(const MpiCall&) = delete;

 private:
  WorldState& world_;
};

}  // namespace plenum::comm::mpi
