#include "plenum/train/run_policy.h"

#include <algorithm>

namespace plenum::train {

pipeline::DueByClock RunPolicy::due_by_clock(std::uint64_t step, const RunTimes& times) const {
  // Steps that end from now on, if this one carries the word: those under way, itself, and those that are
  // begun before its outcome is known. If it does not and the next can, the run may have to go on beyond.
  const std::uint64_t next = next_drained(step);
  const std::uint64_t num_waiting = next == step ? next_drained(step + 1) - step - 1 : next - step;
  const double num_steps = 1 + 2 * static_cast<double>(cadence_.lag) + static_cast<double>(num_waiting);
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

std::uint64_t RunPolicy::next_drained(std::uint64_t step) const {
  while (!cadence_.is_drained[step % cadence_.is_drained.size()]) ++step;
  return step;
}

std::uint64_t RunPolicy::drained_before(std::uint64_t step) const {
  do {
    --step;
  } while (step > 0 && !cadence_.is_drained[step % cadence_.is_drained.size()]);
  return step;
}

bool RunPolicy::may_pause_after(std::uint64_t step) const {
  return step >= cadence_.num_steps || next_drained(step) == step;
}

/// Since the last step that it could be done after.
bool RunPolicy::is_due(std::uint64_t step, std::uint64_t every) const {
  if (step >= cadence_.num_steps) return true;
  return step > 0 && every > 0 && step / every > drained_before(step) / every;
}

Pause RunPolicy::due_after(std::uint64_t step) const {
  const bool may_pause = may_pause_after(step);
  return {.is_traced = cadence_.traced_step == step,
          .is_measured = step >= cadence_.first_measured_step && step < cadence_.end_measured_step,
          .is_evaluated = may_pause && is_due(step, cadence_.evaluate_every),
          .is_saved = may_pause && is_due(step, cadence_.checkpoint_every),
          .is_end = step >= cadence_.num_steps};
}

std::size_t RunPolicy::most_uncounted(const Pause& due, const Agreed& agreed) const {
  return due.is_needed() || agreed.asks_for_pause() ? 0 : cadence_.lag;
}

Pause RunPolicy::after(std::uint64_t step, const Agreed& agreed) const {
  Pause pause = due_after(step);
  if (!may_pause_after(step)) return pause;
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
