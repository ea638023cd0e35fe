#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "plenum/comm/local/queued_operations.h"
#include "plenum/comm/local/world_state.h"

namespace plenum::comm::local {

/// One member's end of a group of threads.
class LocalCommunicator final : public ContributionCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<WorldState> world, std::shared_ptr<Group> group, std::size_t index)
      : world_(std::move(world)), group_(std::move(group)), index_(index) {}

  std::size_t index() const override { return index_; }
  std::size_t size() const override { return group_->ranks().size(); }
  Rank rank_of(std::size_t member) const override { return group_->ranks()[member]; }

  Completion start_send(std::size_t to, Tag tag, ConstElements elements) override;
  Completion start_receive(std::size_t from, Tag tag, Elements elements) override;

  std::unique_ptr<Communicator> group(std::span<const std::size_t> members) override;
  /// Queues of one device, all members or none: their buffers then lie in its memory. Not after anything was
  /// started.
  void issue_into(const tensor::WorkQueue& queue) override {
    if (size() > 1) queue_ = &queue;
  }
  void abort_all(Rank failed_rank, std::string_view reason) override {
    world_->abort_all(failed_rank, reason);
  }

 private:
  Completion start(Contribution contribution) override;
  QueuedMember queued() const { return {world_, group_, index_, queue_}; }

  std::shared_ptr<WorldState> world_;
  std::shared_ptr<Group> group_;
  std::size_t index_;
  const tensor::WorkQueue* queue_ = nullptr;  ///< of a device, where all is done
  std::uint64_t next_sequence_ = 0;
  std::map<std::vector<std::size_t>, std::uint64_t> num_created_;  ///< groups, by members
};

}  // namespace plenum::comm::local
