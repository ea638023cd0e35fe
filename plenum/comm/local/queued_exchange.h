#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/comm/abort_state.h"
#include "plenum/comm/contribution.h"
#include "plenum/tensor/work_queue.h"

namespace plenum::comm::local {

/// A message whose bytes lie in a device's memory until the receiver's queue has copied them.
struct QueuedMessage {
  ConstElements elements;
  std::unique_ptr<tensor::QueueEvent> is_ready = {};   ///< in the sender's queue
  std::unique_ptr<tensor::QueueEvent> is_copied = {};  ///< in the receiver's; null until it is put in
};

/// A collective in the queues of its members: each does its part of the work in its own queue, which waits
/// for all that the others bring; what comes behind waits for all parts.
struct QueuedMeeting {
  explicit QueuedMeeting(std::size_t num_members)
      : contributions(num_members), entries(num_members), exits(num_members) {}

  std::vector<Contribution> contributions;
  std::vector<std::unique_ptr<tensor::QueueEvent>> entries;  ///< of each member: what it brings is there
  std::vector<std::unique_ptr<tensor::QueueEvent>> exits;    ///< of each member: its part is done
  std::size_t num_present = 0;
  std::size_t num_done = 0;  ///< whose part is in their queues
  std::string disagreement;
};

/// What the members of a group tell each other about work in queues of one device. Bytes are touched by the
/// queues alone; here threads wait only until the others have put theirs in.
class QueuedExchange {
 public:
  QueuedExchange(const AbortState& abort, std::span<const Rank> ranks) : abort_(abort), ranks_(ranks) {}

  /// Called by the sender, whose queue has what comes before the message.
  std::shared_ptr<QueuedMessage> send(std::size_t from, std::size_t to, Tag tag, ConstElements elements,
                                      const tensor::WorkQueue& queue);
  /// Whether the receiver has put its copy in.
  bool is_taken(const QueuedMessage& message);
  void await_taken(const QueuedMessage& message);

  /// Puts the copy of a message into the receiver's queue; false if it has not been sent. Throws
  /// InternalError if it does not fit.
  bool try_receive(std::size_t from, std::size_t to, Tag tag, Elements destination,
                   const tensor::WorkQueue& queue);
  void receive(std::size_t from, std::size_t to, Tag tag, Elements destination,
               const tensor::WorkQueue& queue);

  /// Brings a member's part to the group's collective number `sequence`.
  std::shared_ptr<QueuedMeeting> join(std::uint64_t sequence, std::size_t member, Contribution contribution,
                                      const tensor::WorkQueue& queue);
  bool are_all_present(const QueuedMeeting& meeting);
  void await_all_present(const QueuedMeeting& meeting);
  /// Puts a member's part of the work into its queue, once all are present. Throws InternalError if they
  /// disagree.
  void work(QueuedMeeting& meeting, std::size_t member, const tensor::WorkQueue& queue);
  bool are_all_done(const QueuedMeeting& meeting);
  void await_all_done(const QueuedMeeting& meeting);

  /// Lets waiting threads see that the world was aborted.
  void wake();

 private:
  using Key = std::tuple<std::size_t, std::size_t, Tag>;

  /// Waits until it is so; throws Aborted if the world is aborted before.
  void await(base::FunctionRef<bool()> is_so, std::unique_lock<std::mutex>& lock);
  std::shared_ptr<QueuedMessage> take(const Key& key);
  void copy(QueuedMessage& message, const Key& key, Elements destination, const tensor::WorkQueue& queue);

  const AbortState& abort_;
  std::span<const Rank> ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::deque<std::shared_ptr<QueuedMessage>>> sent_;  ///< that nobody has taken
  std::map<std::uint64_t, std::shared_ptr<QueuedMeeting>> open_;    ///< to which some member is yet to come
};

}  // namespace plenum::comm::local
