#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plenum/control/control_plane.h"

namespace plenum::control {

/// So long that only what never comes is missed.
inline constexpr std::chrono::seconds kLongTime{60};

inline Launch launch_of(std::uint32_t rank, std::uint32_t num_ranks, std::string secret = {}) {
  return {.launcher = Launcher::Plenum,
          .rank = {rank},
          .num_ranks = num_ranks,
          .local_rank = rank,
          .num_local_ranks = num_ranks,
          .secret = std::move(secret)};
}

/// Heartbeats so often that tests are short, and a death so late that a busy machine gives none by itself.
inline ControlOptions quick_options(const std::string& run_directory) {
  return {.run_directory = run_directory,
          .rendezvous_limit = kLongTime,
          .heartbeat_interval = std::chrono::milliseconds(100),
          .dead_after = std::chrono::milliseconds(4000),
          .clock_interval = std::chrono::milliseconds(200)};
}

/// The failures that a rank is told of.
class FailureLog {
 public:
  ControlPlane::OnFailure listener() {
    return [this](const RankFailure& failure) {
      const std::lock_guard lock(mutex_);
      failures_.push_back(failure);
      changed_.notify_all();
    };
  }
  /// Waits until there is one.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLongTime, [&] { return !failures_.empty(); });
  }
  std::vector<RankFailure> all() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RankFailure> failures_;
};

/// A rank that is a thread of the test.
struct TestRank {
  ControlPlane& plane;
  FailureLog& failures;
  std::uint32_t rank;
};

/// What came of a rank: the failures that it was told of until its plane was destroyed, and what it threw.
struct RankResult {
  std::vector<RankFailure> failures;
  std::string error;
};

/// Runs `body` on a plane for each rank, in threads of their own.
inline std::vector<RankResult> run_ranks(std::uint32_t num_ranks, const ControlOptions& options,
                                         const std::function<void(TestRank)>& body) {
  std::vector<RankResult> results(num_ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      FailureLog failures;
      try {
        ControlPlane plane(launch_of(rank, num_ranks), options, failures.listener());
        body({plane, failures, rank});
      } catch (const std::exception& error) {
        results[rank].error = error.what();
      }
      results[rank].failures = failures.all();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace plenum::control
