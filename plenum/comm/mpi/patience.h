#pragma once

#include <chrono>
#include <cstdint>

namespace plenum::comm::mpi {

/// How a thread waits that has to look for itself: for a moment without pause, longer while elements travel,
/// which move only as it looks; then it sleeps between two looks, so that a thread that computes on the same
/// core loses little. It never yields: a thread that wakes is run before one that computes, one
/// that has yielded waits until the other's turn is over, which is milliseconds.
class Patience {
 public:
  /// How long to look without pause: for others to come, and while elements travel.
  struct Spin {
    std::chrono::microseconds for_others{0};
    std::chrono::microseconds for_elements{0};
  };
  enum class Awaited : std::uint8_t { Others, Elements };

  explicit Patience(const Spin& spin) : spin_(spin) {}

  /// Called when something has moved: more may follow at once.
  void renew() { since_ = std::chrono::steady_clock::now(); }
  void pause(Awaited awaited = Awaited::Others) const;

 private:
  Spin spin_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace plenum::comm::mpi
