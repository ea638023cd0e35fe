#include "plenum/pipeline/watched_communicator.h"

#include <utility>

namespace plenum::pipeline {
namespace {

using comm::Completion;
using comm::ConstElements;
using comm::Elements;
using comm::Tag;

class WatchedOperation final : public comm::Operation {
 public:
  WatchedOperation(Completion completion, LaneProgress& progress)
      : completion_(std::move(completion)), progress_(progress) {}

  void wait() override {
    enter(LaneState::AwaitsRanks);
    completion_.wait();
    enter(LaneState::Works);
  }

  bool test() override {
    const bool is_done = completion_.test();
    enter(is_done ? LaneState::Works : LaneState::AwaitsRanks);
    return is_done;
  }

  void abandon() noexcept override { completion_ = {}; }

 private:
  /// To ask again in vain is not to get on.
  void enter(LaneState state) {
    if (progress_.state != state) progress_.move_on(state);
  }

  Completion completion_;
  LaneProgress& progress_;
};

}  // namespace

Completion WatchedCommunicator::watched(Completion completion) {
  return Completion(std::make_unique<WatchedOperation>(std::move(completion), progress_));
}

Completion WatchedCommunicator::start_all_reduce(Elements elements, Tag tag) {
  return watched(ranks_->start_all_reduce(elements, tag));
}

Completion WatchedCommunicator::start_reduce_scatter(ConstElements source, Elements destination,
                                                     std::span<const std::size_t> counts, Tag tag) {
  return watched(ranks_->start_reduce_scatter(source, destination, counts, tag));
}

Completion WatchedCommunicator::start_all_gather(ConstElements source, Elements destination,
                                                 std::span<const std::size_t> counts, Tag tag) {
  return watched(ranks_->start_all_gather(source, destination, counts, tag));
}

Completion WatchedCommunicator::start_broadcast(Elements elements, std::size_t root, Tag tag) {
  return watched(ranks_->start_broadcast(elements, root, tag));
}

Completion WatchedCommunicator::start_all_to_all(ConstElements source,
                                                 std::span<const std::size_t> send_counts,
                                                 Elements destination,
                                                 std::span<const std::size_t> receive_counts, Tag tag) {
  return watched(ranks_->start_all_to_all(source, send_counts, destination, receive_counts, tag));
}

Completion WatchedCommunicator::start_barrier(Tag tag) {
  return watched(ranks_->start_barrier(tag));
}

Completion WatchedCommunicator::start_send(std::size_t to, Tag tag, ConstElements elements) {
  return watched(ranks_->start_send(to, tag, elements));
}

Completion WatchedCommunicator::start_receive(std::size_t from, Tag tag, Elements elements) {
  return watched(ranks_->start_receive(from, tag, elements));
}

std::unique_ptr<comm::Communicator> WatchedCommunicator::group(std::span<const std::size_t> members) {
  return std::make_unique<WatchedCommunicator>(ranks_->group(members), progress_);
}

}  // namespace plenum::pipeline
