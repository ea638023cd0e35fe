#include "plenum/comm/mpi/patience.h"

#include <thread>

namespace plenum::comm::mpi {
namespace {

using std::chrono::microseconds;

constexpr microseconds kShortSleep{20};
constexpr microseconds kLongSleep{200};
constexpr microseconds kLongWait{20'000};

}  // namespace

void Patience::pause(Awaited awaited) const {
  const auto waited = std::chrono::steady_clock::now() - since_;
  if (waited < (awaited == Awaited::Others ? spin_.for_others : spin_.for_elements)) return;
  std::this_thread::sleep_for(waited < kLongWait ? kShortSleep : kLongSleep);
}

}  // namespace plenum::comm::mpi
