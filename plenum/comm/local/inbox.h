#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plenum/comm/abort_state.h"

namespace plenum::comm::local {

/// A receive that was started before its message came.
struct PostedReceive {
  enum class State { Waiting, Copying, Done };

  Elements destination;
  std::size_t from_member = 0;
  Tag tag = 0;
  State state = State::Waiting;
  std::string error;  ///< why the message does not fit; empty if it does
};

/// Where the messages to one member of a group arrive. A message whose receive is not yet started is kept in
/// a copy; else it goes straight to its destination. No lock is held while bytes are copied.
class Inbox {
 public:
  Inbox(const AbortState& abort, Rank owner) : abort_(abort), owner_(owner) {}

  /// Called by the sender.
  void deliver(std::size_t from_member, Rank from, Tag tag, ConstElements elements);
  /// Takes the message if it is there, into `destination`; else gives what wait() and test() ask for. Throws
  /// InternalError if the message does not fit.
  std::shared_ptr<PostedReceive> receive(std::size_t from_member, Rank from, Tag tag, Elements destination);

  void wait(const std::shared_ptr<PostedReceive>& posted);
  bool test(const std::shared_ptr<PostedReceive>& posted);
  /// Gives a receive up: its message, if it is yet to come, is for the next one.
  void abandon(const std::shared_ptr<PostedReceive>& posted);
  /// Lets waiting threads see that the world was aborted.
  void wake();

 private:
  using Key = std::pair<std::size_t, Tag>;
  struct Message {
    std::vector<std::byte> bytes;
    tensor::DType dtype;
    ConstElements elements() const { return {bytes, dtype}; }
  };

  std::shared_ptr<PostedReceive> take_posted(const Key& key);
  /// Copies without the lock.
  void fill(PostedReceive& posted, ConstElements elements, std::unique_lock<std::mutex>& lock);
  std::string misfit(Rank from, Tag tag, ConstElements elements, Elements destination) const;
  void withdraw(const std::shared_ptr<PostedReceive>& posted);

  const AbortState& abort_;
  Rank owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Of each sender and tag there are either messages without a receive or receives without a message.
  std::map<Key, std::deque<Message>> messages_;
  std::map<Key, std::deque<std::shared_ptr<PostedReceive>>> posted_;
};

}  // namespace plenum::comm::local
