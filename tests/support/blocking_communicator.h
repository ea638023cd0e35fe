#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/comm/local/local_world.h"

namespace plenum::test {

/// A communicator with the least that an engine may offer: it looks at no tag, messages between two members
/// are received in the order in which they are sent, and nothing is started that does not end first. A send
/// returns when its message is received, a collective when all members have taken part. NCCL on one stream
/// does the same.
class BlockingCommunicator final : public comm::Communicator {
 public:
  explicit BlockingCommunicator(std::unique_ptr<comm::Communicator> ranks)
      : ranks_(std::move(ranks)), answers_(ranks_->duplicate()) {}

  std::size_t index() const override { return ranks_->index(); }
  std::size_t size() const override { return ranks_->size(); }
  comm::Rank rank_of(std::size_t member) const override { return ranks_->rank_of(member); }

  comm::Completion start_all_reduce(comm::Elements elements, comm::Tag) override {
    ranks_->start_all_reduce(elements, 0).wait();
    return {};
  }
  comm::Completion start_reduce_scatter(comm::ConstElements source, comm::Elements destination,
                                        std::span<const std::size_t> counts, comm::Tag) override {
    ranks_->start_reduce_scatter(source, destination, counts, 0).wait();
    return {};
  }
  comm::Completion start_all_gather(comm::ConstElements source, comm::Elements destination,
                                    std::span<const std::size_t> counts, comm::Tag) override {
    ranks_->start_all_gather(source, destination, counts, 0).wait();
    return {};
  }
  comm::Completion start_broadcast(comm::Elements elements, std::size_t root, comm::Tag) override {
    ranks_->start_broadcast(elements, root, 0).wait();
    return {};
  }
  comm::Completion start_all_to_all(comm::ConstElements source, std::span<const std::size_t> send_counts,
                                    comm::Elements destination, std::span<const std::size_t> receive_counts,
                                    comm::Tag) override {
    ranks_->start_all_to_all(source, send_counts, destination, receive_counts, 0).wait();
    return {};
  }
  comm::Completion start_barrier(comm::Tag) override {
    ranks_->start_barrier(0).wait();
    return {};
  }

  comm::Completion start_send(std::size_t to, comm::Tag, comm::ConstElements elements) override {
    ranks_->start_send(to, 0, elements).wait();
    answers_->start_receive(to, 0, {}).wait();
    return {};
  }
  comm::Completion start_receive(std::size_t from, comm::Tag, comm::Elements elements) override {
    ranks_->start_receive(from, 0, elements).wait();
    answers_->start_send(from, 0, {}).wait();
    return {};
  }

  std::unique_ptr<comm::Communicator> group(std::span<const std::size_t> members) override {
    return std::make_unique<BlockingCommunicator>(ranks_->group(members));
  }
  void abort_all(comm::Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  std::unique_ptr<comm::Communicator> ranks_;
  std::unique_ptr<comm::Communicator> answers_;
};

/// One for each of some ranks that are threads of this process.
inline std::vector<std::unique_ptr<comm::Communicator>> blocking_ranks(std::size_t num_ranks) {
  comm::local::LocalWorld world(num_ranks);
  std::vector<std::unique_ptr<comm::Communicator>> ranks;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    ranks.push_back(std::make_unique<BlockingCommunicator>(world.communicator(comm::Rank::at(rank))));
  }
  return ranks;
}

}  // namespace plenum::test
