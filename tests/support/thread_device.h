#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "plenum/tensor/work_queue.h"

namespace plenum::tensor {

/// What the queues of a stand-in for a device share: it does one thing at a time, in any order that its
/// queues allow. After the first error nothing is done any more, and whoever looks at an event is told of it.
class ThreadDevice {
 public:
  /// Does something that is no queue's turn, but touches what queues touch.
  void with_device(const std::function<void()>& work) const {
    const std::lock_guard lock(works_);
    work();
  }
  void run(const std::function<void()>& work) noexcept;
  void fail(std::exception_ptr error) noexcept;
  /// Throws the first error, if there was one.
  void check() const;

 private:
  mutable std::mutex works_;  ///< while something is done
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

/// A queue of such a device: a thread that does what was put in, some time later.
class ThreadQueue final : public WorkQueue {
 public:
  /// What may be wrong or slow with a queue.
  struct Faults {
    bool ignores_waits = false;
    std::chrono::milliseconds delay{0};  ///< before everything it does
  };

  /// Borrows the device.
  explicit ThreadQueue(ThreadDevice& device) : ThreadQueue(device, Faults{}) {}
  ThreadQueue(ThreadDevice& device, Faults faults)
      : device_(device), faults_(faults), thread_([this] { serve(); }) {}
  /// Does what was put in before.
  ~ThreadQueue() override;

  /// Does it as the device's only work.
  void put(std::function<void()> work) const;
  /// The same for what waits for others, beside the rest.
  void put_beside(std::function<void()> work) const;

  std::unique_ptr<QueueEvent> make_event(Timed timed) const override;
  void record(QueueEvent& event) const override;
  void wait_for(const QueueEvent& event) const override;
  void copy(std::span<const std::byte> from, std::span<std::byte> to) const override;
  /// Of Float64.
  void sum(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
           std::size_t count, DType dtype) const override;

 private:
  void put_entry(std::function<void()> entry) const;
  void serve();

  ThreadDevice& device_;
  Faults faults_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::deque<std::function<void()>> entries_;
  bool is_going_ = false;
  std::thread thread_;
};

}  // namespace plenum::tensor
