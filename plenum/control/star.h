#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/control/clock_offset.h"
#include "plenum/control/descriptor.h"
#include "plenum/control/latest_text.h"
#include "plenum/control/message.h"
#include "plenum/control/rank_failure.h"

namespace plenum::control {

/// The time in which this process ran: stops while the process or the machine is stopped, so that nobody is
/// taken for dead by one who did not listen.
class AwakeClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// To be called at least every `longest_sleep`; a longer pause counts as that.
  void advance(Clock::time_point now, Clock::duration longest_sleep) {
    now_ += std::min(now - last_, longest_sleep);
    last_ = now;
  }
  Clock::duration now() const { return now_; }

 private:
  Clock::time_point last_ = Clock::now();
  Clock::duration now_{};
};

/// One end of the star in which rank 0 is joined with each other rank: what its centre (Hub) and its points
/// (Spoke) have in common. Each has a service thread, which alone reads, sends and judges who is dead, so
/// that a rank lives for as long as its process runs, whatever its other threads do.
class Star {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;
  /// Called once by the service thread, when a rank has failed.
  using OnFailure = std::function<void(const RankFailure&)>;

  struct Options {
    base::Rank rank;
    std::string host;
    Milliseconds heartbeat_interval{1000};
    Milliseconds dead_after{15'000};
    Milliseconds clock_interval{10'000};
  };

  /// What rank 0 makes of the contributions of all ranks.
  struct Combined {
    bool is_refusal = false;
    std::string bytes;  ///< for all ranks
  };
  using Combine = std::function<Combined(std::vector<std::string> contributions)>;

  virtual ~Star() = default;
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  /// The first is told at once, so that something is known of a rank that ends before its next heartbeat.
  void say(std::string_view action) noexcept {
    status_.write(action);
    if (!has_spoken_.exchange(true)) wake();
  }

  /// Gives rank 0 the bytes of each rank and each rank what rank 0 made of them. Throws RankFailed, UserError
  /// where the time is over, and UserError with the bytes where it is a refusal, after which nobody is
  /// missed.
  virtual std::string exchange(ExchangeKind kind, std::string_view bytes, const Combine& combine,
                               Milliseconds limit) = 0;
  virtual void report_failure(std::string_view what) = 0;
  virtual void goodbye(Milliseconds limit) = 0;
  virtual ClockOffset clock_offset() const = 0;

  std::optional<RankFailure> failure() const;

 protected:
  Star(Options options, OnFailure on_failure);

  /// The service thread runs serve() between these; the second asks it to end, and waits for it. A derived
  /// class calls them at the end of its constructor and at the beginning of its destructor.
  void start();
  void stop();
  virtual void serve() = 0;

  void wake();
  /// Waits until one of the descriptors is readable, or writable where it is given so, somebody calls wake(),
  /// or the time comes.
  struct Waiting {
    int descriptor;
    bool wants_to_send;
  };
  void wait_for_events(const std::vector<Waiting>& connections, Clock::time_point until);

  /// Lets waiting threads know of the failure, and tells it, if there is one. Called without the mutex, by
  /// the service thread.
  void deliver(const std::optional<RankFailure>& failure);
  /// Throws RankFailed if there is a failure. Called with the mutex.
  void throw_if_failed() const;

  Clock::duration longest_sleep() const { return 2 * options_.heartbeat_interval; }

  const Options options_;
  LatestText status_;
  std::atomic<bool> has_spoken_{false};
  mutable std::mutex
      mutex_;  ///< of all that follows here and in derived classes, but for what the thread owns
  std::condition_variable changed_;
  std::optional<RankFailure> failure_;
  bool is_stopping_ = false;
  AwakeClock awake_;
  Clock::time_point next_heartbeat_ = Clock::now();

 private:
  const OnFailure on_failure_;
  Descriptor wake_;
  std::thread thread_;
};

}  // namespace plenum::control
