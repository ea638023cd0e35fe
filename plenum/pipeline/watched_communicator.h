#pragma once

#include <memory>

#include "plenum/comm/communicator.h"
#include "plenum/pipeline/lane_progress.h"

namespace plenum::pipeline {

/// A communicator that a program uses at its own will, within an action of one lane: tells the lane's
/// progress when it waits for other ranks, so that those are not named for a hang of their peer.
class WatchedCommunicator final : public comm::Communicator {
 public:
  /// Borrows the progress of the lane, whose thread alone may communicate here.
  WatchedCommunicator(std::unique_ptr<comm::Communicator> ranks, LaneProgress& progress)
      : ranks_(std::move(ranks)), progress_(progress) {}

  std::size_t index() const override { return ranks_->index(); }
  std::size_t size() const override { return ranks_->size(); }
  comm::Rank rank_of(std::size_t member) const override { return ranks_->rank_of(member); }

  comm::Completion start_all_reduce(comm::Elements elements, comm::Tag tag) override;
  comm::Completion start_reduce_scatter(comm::ConstElements source, comm::Elements destination,
                                        std::span<const std::size_t> counts, comm::Tag tag) override;
  comm::Completion start_all_gather(comm::ConstElements source, comm::Elements destination,
                                    std::span<const std::size_t> counts, comm::Tag tag) override;
  comm::Completion start_broadcast(comm::Elements elements, std::size_t root, comm::Tag tag) override;
  comm::Completion start_all_to_all(comm::ConstElements source, std::span<const std::size_t> send_counts,
                                    comm::Elements destination, std::span<const std::size_t> receive_counts,
                                    comm::Tag tag) override;
  comm::Completion start_barrier(comm::Tag tag) override;
  comm::Completion start_send(std::size_t to, comm::Tag tag, comm::ConstElements elements) override;
  comm::Completion start_receive(std::size_t from, comm::Tag tag, comm::Elements elements) override;

  /// Watched as well.
  std::unique_ptr<comm::Communicator> group(std::span<const std::size_t> members) override;
  void issue_into(const tensor::WorkQueue& queue) override { ranks_->issue_into(queue); }
  void abort_all(comm::Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  comm::Completion watched(comm::Completion completion);

  std::unique_ptr<comm::Communicator> ranks_;
  LaneProgress& progress_;
};

}  // namespace plenum::pipeline
