#pragma once

#include <chrono>

namespace plenum::comm::mpi {

/// How a thread waits that has to look for itself: for a moment without pause, since while elements travel
/// the next ones come within microseconds; then it sleeps between two looks, so that a thread that computes
/// on the same core loses little. It never yields: a thread that wakes is run before one that computes, one
/// that has yielded waits until the other's turn is over, which is milliseconds.
class Patience {
 public:
  /// `spin`: how long to look without pause.
  explicit Patience(std::chrono::microseconds spin) : spin_(spin) {}

  /// Called when something has moved: more may follow at once.
  void renew() { since_ = std::chrono::steady_clock::now(); }
  void pause() const;

 private:
  std::chrono::microseconds spin_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace plenum::comm::mpi
