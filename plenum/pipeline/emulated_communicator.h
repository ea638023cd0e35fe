#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/plan/link.h"

namespace plenum::pipeline {

/// A communicator of ranks that share a clock, over a link that is slower than the one there is, to study
/// networks on one machine: what is communicated is the same, and takes at least as long as the formulas of
/// plan/link.h say. Who waits sleeps, and computes meanwhile in other threads, as a network lets it.
///
/// - A collective is done no earlier than its time after the last member started it.
/// - The messages to one member follow each other: each holds the wire for its bytes, and is there a latency
///   later. A send is done when its bytes are on the wire.
///
/// Wires of different communicators do not slow each other down. Works in the host's memory.
class EmulatedCommunicator final : public comm::Communicator {
 public:
  EmulatedCommunicator(std::unique_ptr<comm::Communicator> ranks, const plan::Link& link)
      : ranks_(std::move(ranks)), link_(link), wire_free_(ranks_->size()) {}

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

  /// Emulated as well.
  std::unique_ptr<comm::Communicator> group(std::span<const std::size_t> members) override;
  void abort_all(comm::Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Lets all members know when the last of them started. To be called right before a collective.
  class StartTimes;
  comm::Completion after(std::unique_ptr<StartTimes> times, comm::Completion completion,
                         const plan::LinkSeconds& seconds) const;
  std::unique_ptr<StartTimes> start_times(comm::Tag tag);

  std::unique_ptr<comm::Communicator> ranks_;
  plan::Link link_;
  std::vector<Clock::time_point> wire_free_;  ///< to each member
};

}  // namespace plenum::pipeline
