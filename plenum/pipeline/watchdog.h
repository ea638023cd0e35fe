#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plenum/pipeline/rank_executor.h"

namespace plenum::pipeline {

/// Notices ranks that hang: an action that does not end in time, or all lanes waiting for each other for as
/// long as the limit. An action that never ran before has until the limit; later no longer than kUnusual of
/// the longest time that it took so far and kLeast, if that is less.
///
/// Time in which nobody looked does not count: the whole process may have been stopped, and goes on.
class Watchdog {
 public:
  using Limit = std::chrono::milliseconds;
  static constexpr double kUnusual = 10;
  static constexpr Limit kLeast{30'000};
  /// Longer than anybody waits between two looks.
  static constexpr std::chrono::seconds kLongestLook{5};

  Watchdog(std::span<const std::unique_ptr<RankExecutor>> ranks, Limit limit);

  /// For what took so long at most before, nothing if it never was; `limit` is the most.
  static Limit limit_after(std::chrono::duration<double> longest, Limit limit);

  /// To be called every so often.
  std::optional<Failure> look(Clock::time_point now);

 private:
  struct LaneView {
    std::uint64_t num_moves = 0;
    Clock::time_point moved;
  };

  Failure hang_at(const RankExecutor& rank, schedule::Lane lane, std::string message) const;
  /// What waiting lanes wait for, other than the one that hangs.
  std::string describe_waiting(const RankExecutor* except, schedule::Lane lane) const;

  std::span<const std::unique_ptr<RankExecutor>> ranks_;
  Limit limit_;
  Clock::time_point last_look_ = Clock::now();
  std::vector<std::array<LaneView, schedule::kNumLanes>> views_;
};

}  // namespace plenum::pipeline
