#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plenum::pipeline {

/// What a lane is doing.
enum class LaneState : std::uint8_t { Ended, AwaitsInputs, AwaitsDevice, AwaitsRanks, Works };

/// Where a lane is, for others to look at while it runs.
struct LaneProgress {
  std::atomic<LaneState> state = LaneState::Ended;
  std::atomic<std::uint64_t> step = 0;
  std::atomic<std::size_t> position = 0;     ///< in LaneProgram::actions()
  std::atomic<double> longest_seconds = 0;   ///< that this action took before; 0 if it never ran
  std::atomic<std::uint64_t> num_moves = 0;  ///< grows whenever the lane gets on

  /// Says that the lane has got on. Whoever sees the state and then looks at num_moves sees this move: it
  /// never takes a lane that has just begun to work for one that has worked since its last move.
  void move_on(LaneState to) {
    num_moves.fetch_add(1, std::memory_order_relaxed);
    state.store(to, std::memory_order_release);
  }
};

}  // namespace plenum::pipeline
