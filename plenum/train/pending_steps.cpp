#include "plenum/train/pending_steps.h"

namespace plenum::train {

bool PendingSteps::count(Due due, base::FunctionRef<bool(const PendingStep&)> count) {
  bool is_stop_asked = false;
  while (steps_.size() > (due == Due::All || is_stop_asked ? 0 : lag_)) {
    const PendingStep step = steps_.front();
    steps_.pop_front();
    is_stop_asked |= count(step);
  }
  return is_stop_asked;
}

}  // namespace plenum::train
