#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plenum/pipeline/rank_executor.h"

namespace plenum::pipeline {

/// Notices ranks that hang: an action that does not end within the limit, or all lanes waiting for each other
/// for that long.
class Watchdog {
 public:
  using Limit = std::chrono::milliseconds;
  Watchdog(std::span<const std::unique_ptr<RankExecutor>> ranks, Limit limit);

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
  std::vector<std::array<LaneView, schedule::kNumLanes>> views_;
};

}  // namespace plenum::pipeline
