#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "plenum/base/function_ref.h"
#include "plenum/tensor/dtype.h"

namespace plenum::tensor {

/// A point in the work of a queue, for others to wait for.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;

  /// Whether everything that was in the queue when the event was last recorded is done; true if it never was.
  /// Throws what went wrong there.
  virtual bool is_done() const = 0;
  /// By the device's clock, from one event to this. Both are timed and done.
  virtual double seconds_since(const QueueEvent& earlier) const = 0;
};

/// Work of a device, which does it in the order in which it was put in, some time after the calls that put it
/// in have returned. One thread at a time puts work in. Queues of a device run at the same time, and meet
/// only in events.
class WorkQueue {
 public:
  enum class Timed : std::uint8_t { No, Yes };

  virtual ~WorkQueue() = default;

  /// An event for the queues of this device. What is timed costs a little more.
  virtual std::unique_ptr<QueueEvent> make_event(Timed timed) const = 0;
  /// Lets the event stand for everything that is in the queue now. Whoever began to wait for what it stood
  /// for before still waits for that.
  virtual void record(QueueEvent& event) const = 0;
  /// Lets what is put in from now on wait for what the event stands for now. The caller does not wait.
  virtual void wait_for(const QueueEvent& event) const = 0;

  /// Copies bytes within the device's memory, as many as there are of both.
  virtual void copy(std::span<const std::byte> from, std::span<std::byte> to) const = 0;
  /// Sums so many floating-point numbers of all sources, in their order, and overwrites every destination
  /// with the result, all in the device's memory. A destination may be one of the sources.
  virtual void sum(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                   std::size_t count, DType dtype) const = 0;
};

/// Lets the caller wait until an event is done; false if `gives_up`, which is asked every so often, says so
/// before. Leaves the core to others: it looks again after about a hundredth of the time that it has waited.
bool wait_on_host(const QueueEvent& event, base::FunctionRef<bool()> gives_up);

}  // namespace plenum::tensor
