#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/comm/communicator.h"

namespace plenum::comm {

/// A communicator of threads that reads what is sent as late as it may: when it is received. Whoever uses the
/// buffer again too early changes the message.
class LateReadingCommunicator final : public Communicator {
 public:
  explicit LateReadingCommunicator(std::unique_ptr<Communicator> ranks)
      : ranks_(std::move(ranks)), answers_(ranks_->duplicate()) {}

  std::size_t index() const override { return ranks_->index(); }
  std::size_t size() const override { return ranks_->size(); }
  Rank rank_of(std::size_t member) const override { return ranks_->rank_of(member); }

  Completion start_all_reduce(Elements elements, Tag tag) override {
    return ranks_->start_all_reduce(elements, tag);
  }
  Completion start_reduce_scatter(ConstElements source, Elements destination,
                                  std::span<const std::size_t> counts, Tag tag) override {
    return ranks_->start_reduce_scatter(source, destination, counts, tag);
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
    const std::array<std::int64_t, 1> address = {reinterpret_cast<std::intptr_t>(elements.bytes.data())};
    ranks_->start_send(to, tag, elements_of(std::span<const std::int64_t>(address))).wait();
    return answers_->start_receive(to, tag, {});
  }
  Completion start_receive(std::size_t from, Tag tag, Elements elements) override {
    return Completion(std::make_unique<LateReceive>(*ranks_, *answers_, from, tag, elements));
  }

  std::unique_ptr<Communicator> group(std::span<const std::size_t> members) override {
    return std::make_unique<LateReadingCommunicator>(ranks_->group(members));
  }
  void abort_all(Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  /// Gets the address of what was sent, reads it, and answers.
  class LateReceive final : public Operation {
   public:
    LateReceive(Communicator& ranks, Communicator& answers, std::size_t from, Tag tag, Elements destination)
        : answers_(answers),
          from_(from),
          tag_(tag),
          destination_(destination),
          received_(ranks.start_receive(from, tag, elements_of(std::span<std::int64_t>(address_)))) {}

    void wait() override {
      received_.wait();
      read();
    }
    bool test() override {
      if (!received_.test()) return false;
      read();
      return true;
    }
    void abandon() noexcept override { received_ = {}; }

   private:
    void read() {
      std::memcpy(destination_.bytes.data(), reinterpret_cast<const void*>(address_[0]),
                  destination_.bytes.size());
      answers_.start_send(from_, tag_, {}).wait();
    }

    Communicator& answers_;
    std::size_t from_;
    Tag tag_;
    Elements destination_;
    std::array<std::int64_t, 1> address_ = {};
    Completion received_;
  };

  std::unique_ptr<Communicator> ranks_;
  std::unique_ptr<Communicator> answers_;
};

}  // namespace plenum::comm
