#include "tests/support/thread_device.h"

#include <cstring>
#include <utility>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::tensor {
namespace {

using Clock = std::chrono::steady_clock;

/// What an event stands for: one moment of a queue.
class Moment {
 public:
  void come() {
    const std::lock_guard lock(mutex_);
    time_ = Clock::now();
    has_come_ = true;
    came_.notify_all();
  }
  bool has_come() const {
    const std::lock_guard lock(mutex_);
    return has_come_;
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return has_come_; });
  }
  Clock::time_point time() const {
    const std::lock_guard lock(mutex_);
    return time_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  Clock::time_point time_;
  bool has_come_ = false;
};

class ThreadEvent final : public QueueEvent {
 public:
  ThreadEvent(const ThreadDevice& device, WorkQueue::Timed timed) : device_(device), timed_(timed) {}

  std::shared_ptr<Moment> renew() {
    const std::lock_guard lock(mutex_);
    moment_ = std::make_shared<Moment>();
    return moment_;
  }
  std::shared_ptr<Moment> moment() const {
    const std::lock_guard lock(mutex_);
    return moment_;
  }

  bool is_done() const override {
    device_.check();
    const std::shared_ptr<Moment> recorded = moment();
    return recorded == nullptr || recorded->has_come();
  }
  double seconds_since(const QueueEvent& earlier) const override {
    const auto& other = dynamic_cast<const ThreadEvent&>(earlier);
    base::check(timed_ == WorkQueue::Timed::Yes && other.timed_ == timed_, "both must be timed");
    base::check(is_done() && other.is_done(), "both must be done");
    return std::chrono::duration<double>(moment()->time() - other.moment()->time()).count();
  }

 private:
  const ThreadDevice& device_;
  WorkQueue::Timed timed_;
  mutable std::mutex mutex_;
  std::shared_ptr<Moment> moment_;
};

}  // namespace

void ThreadDevice::run(const std::function<void()>& work) noexcept {
  try {
    check();
    work();
  } catch (...) {
    fail(std::current_exception());
  }
}

void ThreadDevice::fail(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void ThreadDevice::check() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

ThreadQueue::~ThreadQueue() {
  {
    const std::lock_guard lock(mutex_);
    is_going_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void ThreadQueue::put(std::function<void()> work) const {
  put_beside([this, work = std::move(work)] { device_.with_device(work); });
}

void ThreadQueue::put_beside(std::function<void()> work) const {
  put_entry([this, work = std::move(work)] {
    std::this_thread::sleep_for(faults_.delay);
    device_.run(work);
  });
}

std::unique_ptr<QueueEvent> ThreadQueue::make_event(Timed timed) const {
  return std::make_unique<ThreadEvent>(device_, timed);
}

void ThreadQueue::record(QueueEvent& event) const {
  put_entry([moment = dynamic_cast<ThreadEvent&>(event).renew()] { moment->come(); });
}

void ThreadQueue::wait_for(const QueueEvent& event) const {
  const std::shared_ptr<Moment> moment = dynamic_cast<const ThreadEvent&>(event).moment();
  if (moment != nullptr && !faults_.ignores_waits) put_entry([moment] { moment->wait(); });
}

void ThreadQueue::copy(std::span<const std::byte> from, std::span<std::byte> to) const {
  put([from, to] {
    base::check(from.size() == to.size(), "as many bytes must come as go");
    std::memcpy(to.data(), from.data(), from.size());
  });
}

void ThreadQueue::sum(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                      std::size_t count, DType dtype) const {
  base::check(dtype == DType::Float64, "the stand-in sums doubles");
  put([from = std::vector(sources.begin(), sources.end()),
       to = std::vector(destinations.begin(), destinations.end()), count] {
    for (std::size_t i = 0; i < count; ++i) {
      double sum = reinterpret_cast<const double*>(from.front())[i];
      for (std::size_t source = 1; source < from.size(); ++source)
        sum += reinterpret_cast<const double*>(from[source])[i];
      for (std::byte* const destination : to) reinterpret_cast<double*>(destination)[i] = sum;
    }
  });
}

void ThreadQueue::put_entry(std::function<void()> entry) const {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  changed_.notify_all();
}

void ThreadQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_going_ || !entries_.empty(); });
    if (entries_.empty()) return;
    const std::function<void()> entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    entry();
    lock.lock();
  }
}

}  // namespace plenum::tensor
