#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace plenum::control {

/// How far the clock of rank 0 (std::chrono::steady_clock) is ahead of this rank's.
struct ClockOffset {
  double seconds = 0;
  double error_seconds = std::numeric_limits<double>::infinity();  ///< the truth is within so much of it
};

inline std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Finds a clock's offset by asking for the time several times and believing the answer that came fastest:
/// what a message lost on its way is at most the round trip.
class OffsetMeasurement {
 public:
  static constexpr int kNumPings = 8;

  /// One answer. Returns the offset once there are enough, and begins anew.
  std::optional<ClockOffset> add(std::int64_t sent_ns, std::int64_t answered_ns, std::int64_t received_ns) {
    const std::int64_t round_trip_ns = received_ns - sent_ns;
    if (num_answers_ == 0 || round_trip_ns < best_round_trip_ns_) {
      best_round_trip_ns_ = round_trip_ns;
      best_offset_ns_ = answered_ns - (sent_ns + round_trip_ns / 2);
    }
    if (++num_answers_ < kNumPings) return std::nullopt;
    num_answers_ = 0;
    return ClockOffset{.seconds = static_cast<double>(best_offset_ns_) * 1e-9,
                       .error_seconds = (static_cast<double>(best_round_trip_ns_) / 2 + 1) * 1e-9};
  }

 private:
  int num_answers_ = 0;
  std::int64_t best_round_trip_ns_ = 0;
  std::int64_t best_offset_ns_ = 0;
};

}  // namespace plenum::control
