#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <stop_token>
#include <thread>

namespace plenum::cli {

/// Turns SIGTERM, SIGINT, SIGHUP and SIGUSR1 into a request to stop while it is in scope, but for those that
/// the process was started to ignore, as nohup and shells that start it in the background do: they stay
/// ignored.
///
/// After the request only a person who insists is heard: a SIGINT, which Ctrl-C sends, that comes when
/// `patience` is over ends the process at once. Every other signal asks for what is asked for already.
/// Programs such as timeout signal a process and then its group, which it belongs to, so one request may come
/// as several signals.
///
/// To be made before other threads are started: they inherit that these signals are none of their business.
class StopSignals {
 public:
  using Clock = std::chrono::steady_clock;

  /// Called with the signal that asked for the stop, at once, from a thread of its own.
  using OnRequest = std::function<void(int signal)>;

  explicit StopSignals(
      OnRequest on_request = [](int) {}, Clock::duration patience = std::chrono::seconds(1));
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void wait();
  void take_signal();

  const OnRequest on_request_;
  const Clock::duration patience_;
  std::stop_source stop_;
  Clock::time_point asked_at_;  ///< when a stop was asked for
  sigset_t earlier_mask_{};
  int signals_ = -1;  ///< readable when a signal has come
  int end_ = -1;      ///< readable when this goes out of scope
  std::thread waiter_;
};

}  // namespace plenum::cli
