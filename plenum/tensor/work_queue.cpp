#include "plenum/tensor/work_queue.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace plenum::tensor {

bool wait_on_host(const QueueEvent& event, base::FunctionRef<bool()> gives_up) {
  using std::chrono::microseconds;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!event.is_done()) {
    if (gives_up()) return false;
    const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - begin);
    std::this_thread::sleep_for(std::clamp(waited / 128, microseconds(10), microseconds(1000)));
  }
  return true;
}

}  // namespace plenum::tensor
