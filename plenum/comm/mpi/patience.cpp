#include "plenum/comm/mpi/patience.h"

#include <thread>

namespace plenum::comm::mpi {
namespace {

using std::chrono::microseconds;

constexpr microseconds kSpin{30};
constexpr microseconds kYield{300};
constexpr microseconds kShortSleep{20};
constexpr microseconds kLongSleep{200};
constexpr microseconds kLongWait{20'000};

}  // namespace

void Patience::pause() const {
  const auto waited = std::chrono::steady_clock::now() - since_;
  if (waited < kSpin) return;
  if (waited < kYield) return std::this_thread::yield();
  std::this_thread::sleep_for(waited < kLongWait ? kShortSleep : kLongSleep);
}

}  // namespace plenum::comm::mpi
