#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "plenum/comm/abort_state.h"
#include "plenum/comm/local/inbox.h"
#include "plenum/comm/local/meeting.h"
#include "plenum/comm/local/queued_exchange.h"

namespace plenum::comm::local {

/// A collective of a group, as its members share it.
struct PendingMeeting {
  explicit PendingMeeting(std::span<const Rank> ranks) : meeting(ranks) {}

  Meeting meeting;
  /// Written with the group's lock; whoever waits looks at them without.
  std::atomic<bool> is_complete = false;  ///< all members have come
  std::atomic<bool> is_finished = false;  ///< and all work is done, or cannot be done
  std::size_t num_working = 0;
  std::string error;  ///< why its result is not there; empty if it is
};

/// What the communicators of one group's members have in common.
class Group {
 public:
  Group(std::shared_ptr<const AbortState> abort, std::vector<Rank> ranks);

  std::span<const Rank> ranks() const { return ranks_; }
  Inbox& inbox(std::size_t member) { return inboxes_[member]; }
  const AbortState& abort_state() const { return *abort_; }
  /// What members do in queues of a device.
  QueuedExchange& queued() { return queued_; }

  /// Brings a member's part to the group's collective number `sequence`.
  std::shared_ptr<PendingMeeting> join(std::uint64_t sequence, std::size_t member, Contribution contribution);
  void wait(PendingMeeting& pending);
  bool test(PendingMeeting& pending);
  /// Whether all members have come: then it needs nobody else to be finished.
  bool is_complete(const PendingMeeting& pending);
  /// Lets waiting threads see that the world was aborted.
  void wake();

 private:
  /// Does what there is to do; true when the meeting is over, for good or bad.
  bool advance(PendingMeeting& pending, std::unique_lock<std::mutex>& lock);
  /// Waits for the next change for as long as it takes to put a thread to sleep and wake it; true if it came.
  bool spin(const PendingMeeting& pending, std::unique_lock<std::mutex>& lock) const;
  /// Throws if it is over for bad.
  void conclude(const PendingMeeting& pending) const;

  std::shared_ptr<const AbortState> abort_;
  std::vector<Rank> ranks_;
  bool may_spin_;              ///< there is a core for every member
  std::deque<Inbox> inboxes_;  ///< of each member; they do not move
  QueuedExchange queued_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<PendingMeeting>> open_;  ///< to which some member is yet to come
};

}  // namespace plenum::comm::local
