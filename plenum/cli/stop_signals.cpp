#include "plenum/cli/stop_signals.h"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "plenum/base/system_call.h"

namespace plenum::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Without those that are ignored: once blocked, they would be kept for whoever asks.
sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  return set;
}

/// Does to the process what a signal does that nobody has asked for.
void let_through(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
}

}  // namespace

StopSignals::StopSignals(OnRequest on_request, Clock::duration patience)
    : on_request_(std::move(on_request)), patience_(patience) {
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
  while (true) {
    if (::poll(waiting, 2, -1) < 0) continue;
    // Signals first: one that is left would end the process when it is blocked no longer.
    if (waiting[0].revents != 0) {
      take_signal();
    } else if (waiting[1].revents != 0) {
      return;
    }
  }
}

void StopSignals::take_signal() {
  signalfd_siginfo taken{};
  if (::read(signals_, &taken, sizeof taken) != sizeof taken) return;
  if (!stop_.stop_requested()) {
    asked_at_ = Clock::now();
    on_request_(static_cast<int>(taken.ssi_signo));
    stop_.request_stop();
  } else if (taken.ssi_signo == SIGINT && Clock::now() - asked_at_ >= patience_) {
    let_through(SIGINT);
  }
}

}  // namespace plenum::cli
