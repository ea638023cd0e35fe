#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace plenum::cli {

/// Turns SIGTERM, SIGINT and SIGHUP into a request to stop while it is in scope. A second signal ends the
/// process, as it would have done without this. To be made before other threads are started: they inherit
/// that these signals are none of their business.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void wait();

  std::stop_source stop_;
  sigset_t earlier_mask_{};
  int signals_ = -1;  ///< readable when a signal has come
  int end_ = -1;      ///< readable when this goes out of scope
  std::thread waiter_;
};

}  // namespace plenum::cli
