#include "plenum/cli/stop_signals.h"

#include <cerrno>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "plenum/base/system_call.h"

namespace plenum::cli {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_signals();
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  base::require_call(signals_ >= 0 && end_ >= 0, "cannot wait for signals");
  ::pthread_sigmask(SIG_BLOCK, &set, &earlier_mask_);
  waiter_ = std::thread([this] { wait(); });
}

StopSignals::~StopSignals() {
  ::eventfd_write(end_, 1);
  waiter_.join();
  ::close(signals_);
  ::close(end_);
  ::pthread_sigmask(SIG_SETMASK, &earlier_mask_, nullptr);
}

void StopSignals::wait() {
  pollfd waiting[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  while (::poll(waiting, 2, -1) < 0) {
  }
  if (waiting[0].revents == 0) return;
  signalfd_siginfo taken{};
  static_cast<void>(::read(signals_, &taken, sizeof taken));
  // This thread is now the one that a second signal goes to, with its usual effect.
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  stop_.request_stop();
  while (::poll(&waiting[1], 1, -1) < 0) {
  }
}

}  // namespace plenum::cli
