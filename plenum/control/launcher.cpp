#include "plenum/control/launcher.h"

#include <algorithm>
#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/control/child_process.h"
#include "plenum/control/credentials.h"
#include "plenum/control/descriptor.h"
#include "plenum/control/launch.h"

namespace plenum::control {
namespace {

using Clock = std::chrono::steady_clock;

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Keeps the signals that are to be passed on, and the news that a process ended, while it is in scope.
class KeptSignals {
 public:
  KeptSignals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
      if (!is_ignored(signal)) sigaddset(&set, signal);
    }
    signals_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    base::require_call(signals_.is_open(), "cannot wait for signals");
    ::pthread_sigmask(SIG_BLOCK, &set, &earlier_mask_);
  }
  ~KeptSignals() { ::pthread_sigmask(SIG_SETMASK, &earlier_mask_, nullptr); }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

  const sigset_t& earlier_mask() const { return earlier_mask_; }

  void wait(std::chrono::milliseconds limit) {
    pollfd waiting{signals_.get(), POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(limit.count()));
  }
  /// The next signal that has come, if there is one.
  std::optional<signalfd_siginfo> take() {
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return std::nullopt;
    return signal;
  }

 private:
  Descriptor signals_;
  sigset_t earlier_mask_{};
};

/// Whether "NAME=value" is of that name.
bool is_of(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

/// All processes of one start, until they have ended.
class Start {
 public:
  Start(const ProcessLaunch& launch, KeptSignals& signals) : launch_(launch), signals_(signals) {
    const std::string secret = make_secret();
    for (std::uint32_t rank = 0; rank < launch.num_processes; ++rank) {
      processes_.emplace_back(ChildProcess::Start{.command = launch.command,
                                                  .environment = environment_of(rank, secret),
                                                  .log = rank == 0 ? "" : launch.log_of(rank),
                                                  .signal_mask = signals.earlier_mask()});
    }
  }

  /// Returns how the first that failed ended, or the first that was stopped, or a good end.
  ProcessEnd wait() {
    while (true) {
      if (!look()) break;
      end_those_that_hang(Clock::now());
      signals_.wait(std::chrono::milliseconds(100));
      pass_signals_on();
    }
    return first_failure_.value_or(first_stop_.value_or(ProcessEnd{}));
  }

  bool was_asked_to_stop() const { return was_asked_to_stop_ || (first_stop_ && !first_failure_); }

 private:
  std::vector<std::string> environment_of(std::uint32_t rank, const std::string& secret) const {
    std::vector<ProcessLaunch::Variable> variables = {
        {std::string(kRankVariable), fmt::to_string(rank)},
        {std::string(kNumRanksVariable), fmt::to_string(launch_.num_processes)},
        {std::string(kLocalRankVariable), fmt::to_string(rank)},
        {std::string(kNumLocalRanksVariable), fmt::to_string(launch_.num_processes)},
        {std::string(kSecretVariable), secret}};
    if (!launch_.devices.empty()) variables.emplace_back("CUDA_VISIBLE_DEVICES", launch_.devices[rank]);
    if (launch_.variables_of) {
      for (ProcessLaunch::Variable& variable : launch_.variables_of(rank))
        variables.push_back(std::move(variable));
    }
    std::vector<std::string> environment = launch_.environment;
    for (const ProcessLaunch::Variable& variable : variables) {
      std::erase_if(environment, [&](const std::string& entry) { return is_of(entry, variable.first); });
      environment.push_back(fmt::format("{}={}", variable.first, variable.second));
    }
    return environment;
  }

  /// Looks who has ended. Returns whether somebody has not.
  bool look() {
    bool is_running = false;
    for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
      ChildProcess& process = processes_[rank];
      if (process.end()) continue;
      if (const std::optional<ProcessEnd>& end = process.look()) {
        take_end(rank, *end);
      } else {
        is_running = true;
      }
    }
    return is_running;
  }

  void take_end(std::uint32_t rank, const ProcessEnd& end) {
    if (end.is_good()) return;
    if (end.signal == 0 && end.code == launch_.stopped_code) {
      if (!first_stop_) first_stop_ = end;
      return;
    }
    if (first_failure_) return;
    first_failure_ = end;
    next_signal_ = SIGTERM;
    next_signal_at_ = Clock::now() + launch_.grace;
    launch_.tell(fmt::format("rank {} ended with {}{}", rank, end_text(end),
                             rank == 0 ? "" : fmt::format("; what it said is in {}", launch_.log_of(rank))));
  }

  void end_those_that_hang(Clock::time_point now) {
    if (!first_failure_ || now < next_signal_at_) return;
    for (const ChildProcess& process : processes_) process.send(next_signal_);
    next_signal_ = SIGKILL;
    next_signal_at_ = now + launch_.kill_after;
  }

  void pass_signals_on() {
    while (const std::optional<signalfd_siginfo> signal = signals_.take()) {
      const int number = static_cast<int>(signal->ssi_signo);
      if (number == SIGCHLD) continue;
      was_asked_to_stop_ = true;
      const bool is_from_terminal = signal->ssi_code == SI_KERNEL;
      for (const ChildProcess& process : processes_) {
        if (!is_from_terminal) process.send(number);
      }
    }
  }

  const ProcessLaunch& launch_;
  KeptSignals& signals_;
  std::vector<ChildProcess> processes_;
  std::optional<ProcessEnd> first_failure_;
  std::optional<ProcessEnd> first_stop_;
  bool was_asked_to_stop_ = false;
  int next_signal_ = SIGTERM;
  Clock::time_point next_signal_at_;
};

}  // namespace

int launch_processes(const ProcessLaunch& launch) {
  base::check(launch.devices.empty() || launch.devices.size() == launch.num_processes,
              "each process needs a device: {} for {}", launch.devices.size(), launch.num_processes);
  KeptSignals signals;
  for (std::uint32_t num_starts = 1;; ++num_starts) {
    Start start(launch, signals);
    const ProcessEnd end = start.wait();
    const bool is_final =
        end.is_good() || start.was_asked_to_stop() || (end.signal == 0 && end.code == launch.user_error_code);
    if (is_final || num_starts > launch.num_restarts) return end.code;
    launch.tell(fmt::format("starting all {} processes again (restart {} of {})", launch.num_processes,
                            num_starts, launch.num_restarts));
  }
}

}  // namespace plenum::control
