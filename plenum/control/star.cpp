#include "plenum/control/star.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include "plenum/base/system_call.h"

namespace plenum::control {

Star::Star(Options options, OnFailure on_failure)
    : options_(std::move(options)),
      on_failure_(std::move(on_failure)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  base::require_call(wake_.is_open(), "cannot make an event descriptor");
}

void Star::start() {
  // Signals are the business of other threads.
  sigset_t all;
  sigset_t earlier;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &earlier);
  thread_ = std::thread([this] { serve(); });
  ::pthread_sigmask(SIG_SETMASK, &earlier, nullptr);
}

void Star::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake();
  thread_.join();
}

void Star::wake() {
  ::eventfd_write(wake_.get(), 1);
}

void Star::wait_for_events(const std::vector<Waiting>& connections, Clock::time_point until) {
  std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}};
  for (const auto& [descriptor, wants_to_send] : connections)
    waiting.push_back({descriptor, static_cast<short>(wants_to_send ? POLLIN | POLLOUT : POLLIN), 0});
  const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
  ::poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000)));
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.get(), &ignored);
}

void Star::deliver(const std::optional<RankFailure>& failure) {
  if (!failure) return;
  {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
  }
  changed_.notify_all();
  on_failure_(*failure);
}

void Star::throw_if_failed() const {
  if (failure_) throw RankFailed(*failure_);
}

std::optional<RankFailure> Star::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace plenum::control
