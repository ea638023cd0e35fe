#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "plenum/comm/communicator.h"

#include "tests/pipeline/toy_program.h"
#include "tests/support/thread_device.h"

namespace plenum::pipeline {

/// A buffer that is known only when a queue comes to it. Its address stands for it until then.
struct DeferredBuffer {
  std::function<comm::ConstElements()> outgoing = {};
  std::function<comm::Elements()> incoming = {};

  comm::Elements handle() { return {std::as_writable_bytes(std::span(this, 1)), tensor::DType::Byte}; }
  static const DeferredBuffer& at(comm::ConstElements handle) {
    return *reinterpret_cast<const DeferredBuffer*>(handle.bytes.data());
  }
};

/// The toy model on a tensor::ThreadDevice: computing and, if asked for, messages are issued into queues.
class DeviceToyProgram final : public ToyProgram {
 public:
  struct Queues {
    bool has_messages = true;
    tensor::ThreadQueue::Faults compute = {};
    tensor::ThreadQueue::Faults messages = {};
  };

  DeviceToyProgram(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow,
                   schedule::Rank rank, Queues queues)
      : ToyProgram(schedule, dataflow, rank),
        has_messages_(queues.has_messages),
        compute_(device_, queues.compute),
        messages_(device_, queues.messages) {}

  const tensor::WorkQueue* queue(schedule::Lane lane) override {
    if (lane == schedule::Lane::Compute) return &compute_;
    return lane == schedule::Lane::Pipeline && has_messages_ ? &messages_ : nullptr;
  }

  void forward(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::forward(run); });
  }
  void backward(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::backward(run); });
  }
  void input_gradient(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::input_gradient(run); });
  }
  void weight_gradient(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::weight_gradient(run); });
  }
  void recompute(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::recompute(run); });
  }
  void curvature(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::curvature(run); });
  }
  void invert(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::invert(run); });
  }
  void accumulate_factor(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::accumulate_factor(run); });
  }
  void inverse_root(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::inverse_root(run); });
  }
  void precondition(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::precondition(run); });
  }
  void square_gradient(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::square_gradient(run); });
  }
  void update(const ActionRun& run) override {
    compute_.put([this, run] { ToyProgram::update(run); });
  }

  comm::ConstElements outgoing(const ActionRun& run) override {
    if (!has_messages_) return on_host([&] { return ToyProgram::outgoing(run); });
    return buffers_
        .emplace_back(DeferredBuffer{.outgoing = [this, run] { return ToyProgram::outgoing(run); }})
        .handle();
  }
  comm::Elements incoming(const ActionRun& run) override {
    if (!has_messages_) return on_host([&] { return ToyProgram::incoming(run); });
    return buffers_
        .emplace_back(DeferredBuffer{
            .incoming = [this, run] { return on_host([&] { return ToyProgram::incoming(run); }); }})
        .handle();
  }
  comm::Elements to_reduce(const ActionRun& run) override {
    return on_host([&] { return ToyProgram::to_reduce(run); });
  }
  PartitionedElements to_partition(const ActionRun& run) override {
    return on_host([&] { return ToyProgram::to_partition(run); });
  }
  void communicated(const ActionRun& run) override {
    if (has_messages_ && schedule::traits_of(run.action.type).lane == schedule::Lane::Pipeline) {
      return messages_.put([this, run] { ToyProgram::communicated(run); });
    }
    device_.with_device([&] { ToyProgram::communicated(run); });
  }

 private:
  /// By whoever is not in a turn of a queue.
  template <typename Work>
  std::invoke_result_t<Work> on_host(Work work) {
    std::invoke_result_t<Work> result;
    device_.with_device([&] { result = work(); });
    return result;
  }

  bool has_messages_;
  tensor::ThreadDevice device_;
  std::list<DeferredBuffer> buffers_;  ///< of the message lane's thread
  tensor::ThreadQueue compute_;
  tensor::ThreadQueue messages_;
};

/// A communicator whose messages a queue sends and receives in its turn, as NCCL does. Collectives are of the
/// host.
class QueuedCommunicator final : public comm::Communicator {
 public:
  explicit QueuedCommunicator(std::unique_ptr<comm::Communicator> ranks) : ranks_(std::move(ranks)) {}

  void issue_into(const tensor::WorkQueue& queue) override {
    queue_ = &dynamic_cast<const tensor::ThreadQueue&>(queue);
  }
  comm::Completion start_send(std::size_t to, comm::Tag tag, comm::ConstElements elements) override {
    if (queue_ == nullptr) return ranks_->start_send(to, tag, elements);
    queue_->put([ranks = ranks_, to, tag, elements] {
      ranks->start_send(to, tag, DeferredBuffer::at(elements).outgoing()).wait();
    });
    return {};
  }
  comm::Completion start_receive(std::size_t from, comm::Tag tag, comm::Elements elements) override {
    if (queue_ == nullptr) return ranks_->start_receive(from, tag, elements);
    queue_->put_beside([ranks = ranks_, from, tag, elements] {
      ranks->start_receive(from, tag, DeferredBuffer::at(elements).incoming()).wait();
    });
    return {};
  }

  std::size_t index() const override { return ranks_->index(); }
  std::size_t size() const override { return ranks_->size(); }
  comm::Rank rank_of(std::size_t member) const override { return ranks_->rank_of(member); }
  comm::Completion start_all_reduce(comm::Elements elements, comm::Tag tag) override {
    return ranks_->start_all_reduce(elements, tag);
  }
  comm::Completion start_reduce_scatter(comm::ConstElements source, comm::Elements destination,
                                        std::span<const std::size_t> counts, comm::Tag tag) override {
    return ranks_->start_reduce_scatter(source, destination, counts, tag);
  }
  comm::Completion start_all_gather(comm::ConstElements source, comm::Elements destination,
                                    std::span<const std::size_t> counts, comm::Tag tag) override {
    return ranks_->start_all_gather(source, destination, counts, tag);
  }
  comm::Completion start_broadcast(comm::Elements elements, std::size_t root, comm::Tag tag) override {
    return ranks_->start_broadcast(elements, root, tag);
  }
  comm::Completion start_all_to_all(comm::ConstElements source, std::span<const std::size_t> send_counts,
                                    comm::Elements destination, std::span<const std::size_t> receive_counts,
                                    comm::Tag tag) override {
    return ranks_->start_all_to_all(source, send_counts, destination, receive_counts, tag);
  }
  comm::Completion start_barrier(comm::Tag tag) override { return ranks_->start_barrier(tag); }
  std::unique_ptr<comm::Communicator> group(std::span<const std::size_t> members) override {
    return std::make_unique<QueuedCommunicator>(ranks_->group(members));
  }
  void abort_all(comm::Rank failed_rank, std::string_view reason) override {
    ranks_->abort_all(failed_rank, reason);
  }

 private:
  std::shared_ptr<comm::Communicator> ranks_;  ///< shared with what waits in queues
  const tensor::ThreadQueue* queue_ = nullptr;
};

}  // namespace plenum::pipeline
