#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "plenum/comm/communicator.h"

namespace plenum::comm {

/// A communicator that tells of whatever is started, before it is; so do all that are made of it.
class HookedCommunicator final : public Communicator {
 public:
  enum class Kind { AllReduce, ReduceScatter, AllGather, Send, Other };
  /// Told what is started and with which elements. By any thread.
  using Hook = std::function<void(Kind, ConstElements)>;

  HookedCommunicator(std::unique_ptr<Communicator> ranks, Hook hook)
      : ranks_(std::move(ranks)), hook_(std::move(hook)) {}

  std::size_t index() const override { return ranks_->index(); }
  std::size_t size() const override { return ranks_->size(); }
  Rank rank_of(std::size_t member) const override { return ranks_->rank_of(member); }

  Completion start_all_reduce(Elements elements, Tag tag) override {
    hook_(Kind::AllReduce, elements);
    return ranks_->start_all_reduce(elements, tag);
  }
  Completion start_reduce_scatter(ConstElements source, Elements destination,
                                  std::span<const std::size_t> counts, Tag tag) override {
    hook_(Kind::ReduceScatter, source);
    return ranks_->start_reduce_scatter(source, destination, counts, tag);
  }
  Completion start_all_gather(ConstElements source, Elements destination, std::span<const std::size_t> counts,
                              Tag tag) override {
    hook_(Kind::AllGather, source);
    return ranks_->start_all_gather(source, destination, counts, tag);
  }
  Completion start_broadcast(Elements elements, std::size_t root, Tag tag) override {
    hook_(Kind::Other, elements);
    return ranks_->start_broadcast(elements, root, tag);
  }
  Completion start_all_to_all(ConstElements source, std::span<const std::size_t> send_counts,
                              Elements destination, std::span<const std::size_t> receive_counts,
                              Tag tag) override {
    hook_(Kind::Other, source);
    return ranks_->start_all_to_all(source, send_counts, destination, receive_counts, tag);
  }
  Completion start_barrier(Tag tag) override {
    hook_(Kind::Other, {});
    return ranks_->start_barrier(tag);
  }
  Completion start_send(std::size_t to, Tag tag, ConstElements elements) override {
    hook_(Kind::Send, elements);
    return ranks_->start_send(to, tag, elements);
  }
  Completion start_receive(std::size_t from, Tag tag, Elements elements) override {
    hook_(Kind::Other, elements);
    return ranks_->start_receive(from, tag, elements);
  }

  std::unique_ptr<Communicator> group(std::span<const std::size_t> members) override {
    return std::make_unique<HookedCommunicator>(ranks_->group(members), hook_);
  }
  void issue_into(const tensor::WorkQueue& queue) override { ranks_->issue_into(queue); }
  void abort_all(Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  std::unique_ptr<Communicator> ranks_;
  Hook hook_;
};

}  // namespace plenum::comm
