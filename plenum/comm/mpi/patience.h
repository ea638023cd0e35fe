#pragma once

#include <chrono>

namespace plenum::comm::mpi {

/// How a thread waits that has to look for itself: for a moment without pause, since an answer mostly comes
/// within microseconds; then it lets others run between two looks; then it sleeps between them, so that a
/// thread that computes on the same core loses little.
class Patience {
 public:
  /// Called when something has moved: more may follow at once.
  void renew() { since_ = std::chrono::steady_clock::now(); }
  void pause() const;

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace plenum::comm::mpi
