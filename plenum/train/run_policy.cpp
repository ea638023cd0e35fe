#include "plenum/train/run_policy.h"

namespace plenum::train {

bool RunPolicy::asks_to_stop(const RunTimes& times) const {
  return times.elapsed_seconds + times.step_seconds + times.pause_seconds >= cadence_.time_limit_seconds;
}

bool RunPolicy::is_due(std::uint64_t step, std::uint64_t every) const {
  return step >= cadence_.num_steps || (every > 0 && step % every == 0);
}

Pause RunPolicy::due_after(std::uint64_t step) const {
  return {.is_traced = cadence_.traced_step == step,
          .is_evaluated = is_due(step, cadence_.evaluate_every),
          .is_saved = is_due(step, cadence_.checkpoint_every),
          .is_end = step >= cadence_.num_steps};
}

std::size_t RunPolicy::most_uncounted(const Pause& due, bool is_stop_asked) const {
  return due.is_needed() || is_stop_asked ? 0 : cadence_.lag;
}

Pause RunPolicy::after(std::uint64_t step, const Agreed& agreed) const {
  Pause pause = due_after(step);
  if (agreed.is_stop_asked) {
    pause.is_evaluated = false;
    pause.is_saved = false;
    pause.is_end = true;
  }
  if (agreed.is_skipped) pause.is_saved = false;
  return pause;
}

}  // namespace plenum::train
