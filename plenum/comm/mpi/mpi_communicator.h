#pragma once

#include <memory>

#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/channel.h"

namespace plenum::comm::mpi {

/// One process's end of a group.
class MpiCommunicator final : public ContributionCommunicator {
 public:
  explicit MpiCommunicator(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  std::size_t index() const override { return channel_->lines().index; }
  std::size_t size() const override { return channel_->lines().size(); }
  Rank rank_of(std::size_t member) const override { return channel_->lines().ranks[member]; }

  Completion start_send(std::size_t to, Tag tag, ConstElements elements) override;
  Completion start_receive(std::size_t from, Tag tag, Elements elements) override;

  std::unique_ptr<Communicator> group(std::span<const std::size_t> members) override;
  void abort_all(Rank failed_rank, std::string_view reason) override {
    channel_->world().abort_all(failed_rank, reason);
  }

 private:
  Completion start(Contribution contribution) override;
  int agree_on_context(std::span<const std::size_t> members);

  std::shared_ptr<Channel> channel_;
};

/// A communicator of some ranks of the world, who all call this.
std::unique_ptr<Communicator> make_communicator(std::shared_ptr<WorldState> world, std::vector<Rank> ranks,
                                                std::size_t index, int context);

}  // namespace plenum::comm::mpi
