#pragma once

#include <algorithm>
#include <chrono>

namespace plenum::packing {

/// A moment after which work is cut short.
class Deadline {
 public:
  /// Below 0 is now; a billion seconds and more is never.
  explicit Deadline(double seconds_from_now)
      : at_(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(seconds_from_now > 0 ? std::min(seconds_from_now, 1e9) : 0))) {}

  bool passed() const { return std::chrono::steady_clock::now() >= at_; }

 private:
  std::chrono::steady_clock::time_point at_;
};

}  // namespace plenum::packing
