#include "plenum/pipeline/emulated_communicator.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

namespace plenum::pipeline {
namespace {

using comm::Completion;
using comm::ConstElements;
using comm::Elements;
using comm::Tag;
using Clock = std::chrono::steady_clock;

/// Ticks of the clock.
using Stamp = std::int64_t;

Stamp stamp_of(Clock::time_point time) {
  return time.time_since_epoch().count();
}

Clock::time_point time_of(Stamp stamp) {
  return Clock::time_point(Clock::duration(stamp));
}

Clock::duration in_clock(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Elements bytes_of(std::span<Stamp> stamps) {
  return {.bytes = std::as_writable_bytes(stamps), .dtype = tensor::DType::Byte};
}

double num_bytes(std::span<const std::size_t> counts, tensor::DType dtype) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) *
                             tensor::size_of(dtype));
}

/// Is done when another operation is, but not before a point in time, which may be known only then.
class DelayedOperation : public comm::Operation {
 public:
  explicit DelayedOperation(Completion completion) : completion_(std::move(completion)) {}

  void wait() override {
    completion_.wait();
    std::this_thread::sleep_until(due());
  }
  bool test() override { return completion_.test() && Clock::now() >= due(); }
  void abandon() noexcept override { completion_ = {}; }

 protected:
  /// Once the operation is done.
  virtual Clock::time_point due() = 0;

 private:
  Completion completion_;
};

class DelayedSend final : public DelayedOperation {
 public:
  DelayedSend(Completion completion, std::unique_ptr<Stamp> stamp, Completion stamped, Clock::time_point due)
      : DelayedOperation(std::move(completion)),
        stamp_(std::move(stamp)),
        stamped_(std::move(stamped)),
        due_(due) {}

 protected:
  Clock::time_point due() override { return due_; }

 private:
  std::unique_ptr<Stamp> stamp_;
  Completion stamped_;  ///< goes before what it reads
  Clock::time_point due_;
};

/// Of a message that the sender's stamp comes before, which says when it is there.
class DelayedReceive final : public DelayedOperation {
 public:
  DelayedReceive(Completion completion, std::unique_ptr<Stamp> stamp, Completion stamped)
      : DelayedOperation(std::move(completion)), stamp_(std::move(stamp)), stamped_(std::move(stamped)) {}

 protected:
  Clock::time_point due() override {
    stamped_.wait();
    return time_of(*stamp_);
  }

 private:
  std::unique_ptr<Stamp> stamp_;
  Completion stamped_;
};

}  // namespace

class EmulatedCommunicator::StartTimes {
 public:
  StartTimes(comm::Communicator& ranks, Tag tag) : stamps_(ranks.size()) {
    Stamp& own = stamps_[ranks.index()];
    own = stamp_of(Clock::now());
    const std::vector<std::size_t> counts(ranks.size(), sizeof(Stamp));
    gathered_ = ranks.start_all_gather(bytes_of({&own, 1}), bytes_of(stamps_), counts, tag);
  }

  Clock::time_point last() {
    gathered_.wait();
    return time_of(std::ranges::max(stamps_));
  }

 private:
  std::vector<Stamp> stamps_;
  Completion gathered_;
};

std::unique_ptr<EmulatedCommunicator::StartTimes> EmulatedCommunicator::start_times(Tag tag) {
  return std::make_unique<StartTimes>(*ranks_, tag);
}

Completion EmulatedCommunicator::after(std::unique_ptr<StartTimes> times, Completion completion,
                                       const plan::LinkSeconds& seconds) const {
  class DelayedCollective final : public DelayedOperation {
   public:
    DelayedCollective(Completion completion, std::unique_ptr<StartTimes> times, Clock::duration duration)
        : DelayedOperation(std::move(completion)), times_(std::move(times)), duration_(duration) {}

   protected:
    Clock::time_point due() override { return times_->last() + duration_; }

   private:
    std::unique_ptr<StartTimes> times_;
    Clock::duration duration_;
  };
  return Completion(std::make_unique<DelayedCollective>(std::move(completion), std::move(times),
                                                        in_clock(seconds.total())));
}

Completion EmulatedCommunicator::start_all_reduce(Elements elements, Tag tag) {
  std::unique_ptr<StartTimes> times = start_times(tag);
  const auto bytes = static_cast<double>(elements.bytes.size());
  return after(std::move(times), ranks_->start_all_reduce(elements, tag),
               plan::all_reduce_seconds(link_, bytes, size()));
}

Completion EmulatedCommunicator::start_reduce_scatter(ConstElements source, Elements destination,
                                                      std::span<const std::size_t> counts, Tag tag) {
  std::unique_ptr<StartTimes> times = start_times(tag);
  return after(std::move(times), ranks_->start_reduce_scatter(source, destination, counts, tag),
               plan::gather_seconds(link_, num_bytes(counts, source.dtype), size()));
}

Completion EmulatedCommunicator::start_all_gather(ConstElements source, Elements destination,
                                                  std::span<const std::size_t> counts, Tag tag) {
  std::unique_ptr<StartTimes> times = start_times(tag);
  return after(std::move(times), ranks_->start_all_gather(source, destination, counts, tag),
               plan::gather_seconds(link_, num_bytes(counts, source.dtype), size()));
}

Completion EmulatedCommunicator::start_broadcast(Elements elements, std::size_t root, Tag tag) {
  std::unique_ptr<StartTimes> times = start_times(tag);
  const auto bytes = static_cast<double>(elements.bytes.size());
  return after(std::move(times), ranks_->start_broadcast(elements, root, tag),
               size() > 1 ? plan::message_seconds(link_, bytes) : plan::LinkSeconds{});
}

Completion EmulatedCommunicator::start_all_to_all(ConstElements source,
                                                  std::span<const std::size_t> send_counts,
                                                  Elements destination,
                                                  std::span<const std::size_t> receive_counts, Tag tag) {
  std::unique_ptr<StartTimes> times = start_times(tag);
  const double bytes =
      std::max(num_bytes(send_counts, source.dtype), num_bytes(receive_counts, source.dtype));
  return after(std::move(times),
               ranks_->start_all_to_all(source, send_counts, destination, receive_counts, tag),
               plan::gather_seconds(link_, bytes, size()));
}

Completion EmulatedCommunicator::start_barrier(Tag tag) {
  std::unique_ptr<StartTimes> times = start_times(tag);
  return after(std::move(times), ranks_->start_barrier(tag), plan::gather_seconds(link_, 0, size()));
}

Completion EmulatedCommunicator::start_send(std::size_t to, Tag tag, ConstElements elements) {
  const auto bytes = static_cast<double>(elements.bytes.size());
  const plan::LinkSeconds seconds = plan::message_seconds(link_, bytes);
  Clock::time_point& wire_free = wire_free_[to];
  wire_free = std::max(wire_free, Clock::now()) + in_clock(seconds.bandwidth);
  auto stamp = std::make_unique<Stamp>(stamp_of(wire_free + in_clock(seconds.latency)));
  Completion stamped = ranks_->start_send(to, tag, bytes_of({stamp.get(), 1}));
  Completion sent = ranks_->start_send(to, tag, elements);
  return Completion(
      std::make_unique<DelayedSend>(std::move(sent), std::move(stamp), std::move(stamped), wire_free));
}

Completion EmulatedCommunicator::start_receive(std::size_t from, Tag tag, Elements elements) {
  auto stamp = std::make_unique<Stamp>(0);
  Completion stamped = ranks_->start_receive(from, tag, bytes_of({stamp.get(), 1}));
  Completion received = ranks_->start_receive(from, tag, elements);
  return Completion(
      std::make_unique<DelayedReceive>(std::move(received), std::move(stamp), std::move(stamped)));
}

std::unique_ptr<comm::Communicator> EmulatedCommunicator::group(std::span<const std::size_t> members) {
  return std::make_unique<EmulatedCommunicator>(ranks_->group(members), link_);
}

}  // namespace plenum::pipeline
