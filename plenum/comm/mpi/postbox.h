#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "plenum/comm/mpi/group_lines.h"
#include "plenum/comm/mpi/task.h"

namespace plenum::comm::mpi {

/// A receive that was asked for.
struct ReceiveTask final : Task {
  Elements destination;
  std::size_t from = 0;
  Tag tag = 0;
  bool is_matched = false;  ///< its message is here or on its way
};

/// The messages of one member of a group. A message is a head with tag, type and size, followed by its
/// payload; a small payload is part of the head. Whoever waits for a message reads the heads of its sender in
/// the order in which they come: payloads that were asked for go straight to their destination, others are
/// kept.
///
/// Used by one thread at a time, which holds an MpiCall.
class Postbox {
 public:
  /// Heads and payloads go by these topics.
  Postbox(const GroupLines& lines, Topic head, Topic payload)
      : lines_(lines), head_(head), payload_(payload), num_posted_(lines.size()) {}
  /// Lets go of what is under way: it must be done, or nobody may call MPI any more.
  ~Postbox() = default;

  std::shared_ptr<Task> send(std::size_t to, Tag tag, ConstElements elements);
  std::shared_ptr<ReceiveTask> receive(std::size_t from, Tag tag, Elements destination);
  /// Gives a receive up whose message has not come: it is for the next one.
  void withdraw(ReceiveTask& receive);

  /// Moves messages on; true if something changed.
  bool drive();
  bool is_arriving() const { return !arriving_.empty(); }
  bool has_work() const { return num_waiting_ > 0 || !sends_.empty() || !arriving_.empty(); }

 private:
  using Key = std::pair<std::size_t, Tag>;
  struct SendTask;
  /// A message that nobody has asked for yet.
  struct Kept {
    std::vector<std::byte> bytes;
    tensor::DType dtype = tensor::DType::Byte;
    bool is_whole = true;
    std::shared_ptr<ReceiveTask> claimant = nullptr;  ///< who asked for it while it was on its way
  };
  /// A payload on its way.
  struct Arriving {
    Requests requests = {};
    std::shared_ptr<ReceiveTask> receive;  ///< that it is for, if one asked
    std::shared_ptr<Kept> kept = nullptr;  ///< else, or where it does not fit
    std::exception_ptr misfit = nullptr;
  };
  struct Head;

  void deliver_to_self(Tag tag, ConstElements elements);
  bool read_head(std::size_t from);
  void take(std::size_t from, const Head& head, std::span<const std::byte> enclosed);
  /// Gives a message that was kept to whoever asks for it.
  void hand_over(ReceiveTask& receive, const Kept& kept);
  void settle(const Arriving& arrived);
  std::shared_ptr<ReceiveTask> take_posted(const Key& key);
  std::exception_ptr misfit(const ReceiveTask& receive, tensor::DType dtype, std::size_t num_bytes) const;

  const GroupLines& lines_;
  Topic head_;
  Topic payload_;
  std::list<std::shared_ptr<SendTask>> sends_;
  std::list<Arriving> arriving_;
  std::map<Key, std::deque<std::shared_ptr<Kept>>> kept_;
  std::map<Key, std::deque<std::shared_ptr<ReceiveTask>>> posted_;
  std::vector<std::size_t> num_posted_;  ///< receives that wait for a head, by sender
  std::size_t num_waiting_ = 0;          ///< sum of these
};

}  // namespace plenum::comm::mpi
