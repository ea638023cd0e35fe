#pragma once

#include <memory>
#include <utility>

#include "plenum/comm/communicator.h"

namespace plenum::comm {

/// A communicator whose sends are complete only when they are received, as those of MPI and NCCL may be:
/// every receive is answered by an empty message.
class RendezvousCommunicator final : public Communicator {
 public:
  explicit RendezvousCommunicator(std::unique_ptr<Communicator> ranks)
      : ranks_(std::move(ranks)), answers_(ranks_->duplicate()) {}

  std::size_t index() const override { return ranks_->index(); }
  std::size_t size() const override { return ranks_->size(); }
  Rank rank_of(std::size_t member) const override { return ranks_->rank_of(member); }

  Completion start_all_reduce(Elements elements, Reduction reduction, Tag tag) override {
    return ranks_->start_all_reduce(elements, reduction, tag);
  }
  Completion start_reduce_scatter(ConstElements source, Elements destination,
                                  std::span<const std::size_t> counts, Reduction reduction,
                                  Tag tag) override {
    return ranks_->start_reduce_scatter(source, destination, counts, reduction, tag);
  }
  Completion start_all_gather(ConstElements source, Elements destination, std::span<const std::size_t> counts,
                              Tag tag) override {
    return ranks_->start_all_gather(source, destination, counts, tag);
  }
  Completion start_broadcast(Elements elements, std::size_t root, Tag tag) override {
    return ranks_->start_broadcast(elements, root, tag);
  }
  Completion start_all_to_all(ConstElements source, std::span<const std::size_t> send_counts,
                              Elements destination, std::span<const std::size_t> receive_counts,
                              Tag tag) override {
    return ranks_->start_all_to_all(source, send_counts, destination, receive_counts, tag);
  }
  Completion start_barrier(Tag tag) override { return ranks_->start_barrier(tag); }

  Completion start_send(std::size_t to, Tag tag, ConstElements elements) override {
    ranks_->start_send(to, tag, elements).wait();
    return answers_->start_receive(to, tag, {});
  }
  Completion start_receive(std::size_t from, Tag tag, Elements elements) override {
    return Completion(
        std::make_unique<AnsweredReceive>(ranks_->start_receive(from, tag, elements), *answers_, from, tag));
  }

  std::unique_ptr<Communicator> group(std::span<const std::size_t> members) override {
    return std::make_unique<RendezvousCommunicator>(ranks_->group(members));
  }
  void abort_all(Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  class AnsweredReceive final : public Operation {
   public:
    AnsweredReceive(Completion received, Communicator& answers, std::size_t from, Tag tag)
        : received_(std::move(received)), answers_(answers), from_(from), tag_(tag) {}

    void wait() override {
      received_.wait();
      answers_.send(from_, tag_, {});
    }
    bool test() override {
      if (!received_.test()) return false;
      answers_.send(from_, tag_, {});
      return true;
    }
    void abandon() noexcept override { received_ = {}; }

   private:
    Completion received_;
    Communicator& answers_;
    std::size_t from_;
    Tag tag_;
  };

  std::unique_ptr<Communicator> ranks_;
  std::unique_ptr<Communicator> answers_;
};

}  // namespace plenum::comm
