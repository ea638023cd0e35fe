#include "plenum/train/run_policy.h"

#include <algorithm>

namespace plenum::train {

pipeline::DueByClock RunPolicy::due_by_clock(const RunTimes& times) const {
  // Steps that end from now on, if this one carries the word: those under way, itself, and those that are
  // begun before its outcome is known.
  const double num_steps = 1 + 2 * static_cast<double>(cadence_.lag);
  const double end_seconds = times.elapsed_seconds + num_steps * times.step_seconds + times.pause_seconds;
  constexpr double kTimesAsLong = 20;
  const auto is_due = [](double since_seconds, double every_seconds, double takes_seconds) {
    return since_seconds >= std::max(every_seconds, kTimesAsLong * takes_seconds);
  };
  return {.is_time_up = end_seconds >= cadence_.time_limit_seconds,
          .is_checkpoint_due =
              is_due(times.since_checkpoint_seconds, cadence_.checkpoint_seconds, times.checkpoint_seconds),
          .is_evaluation_due =
              is_due(times.since_evaluation_seconds, cadence_.evaluation_seconds, times.evaluation_seconds)};
}

bool RunPolicy::is_due(std::uint64_t step, std::uint64_t every) const {
  return step >= cadence_.num_steps || (every > 0 && step % every == 0);
}

Pause RunPolicy::due_after(std::uint64_t step) const {
  return {.is_traced = cadence_.traced_step == step,
          .is_measured = step >= cadence_.first_measured_step && step < cadence_.end_measured_step,
          .is_evaluated = is_due(step, cadence_.evaluate_every),
          .is_saved = is_due(step, cadence_.checkpoint_every),
          .is_end = step >= cadence_.num_steps};
}

std::size_t RunPolicy::most_uncounted(const Pause& due, const Agreed& agreed) const {
  return due.is_needed() || agreed.asks_for_pause() ? 0 : cadence_.lag;
}

Pause RunPolicy::after(std::uint64_t step, const Agreed& agreed) const {
  Pause pause = due_after(step);
  pause.is_evaluated |= agreed.due.is_evaluation_due;
  pause.is_saved |= agreed.due.is_checkpoint_due;
  if (agreed.ends_run()) {
    pause.is_evaluated = false;
    pause.is_saved = false;
    pause.is_end = true;
  }
  if (agreed.is_skipped) pause.is_saved = false;
  return pause;
}

}  // namespace plenum::train
