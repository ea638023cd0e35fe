#include "plenum/train/run_writer.h"

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/train/joint_work.h"
#include "plenum/train/mendable_failure.h"

namespace plenum::train {

RunWriter::RunWriter(Run& run, TrainingObserver& observer, HangWatch& watch)
    : run_(run),
      observer_(observer),
      watch_(watch),
      checkpoints_(run.options.run.directory, static_cast<std::size_t>(run.options.checkpoint.keep)) {
  if (run.processes.is_first()) {
    metrics_.emplace(run.directory->paths(), run.state,
                     RunExtent{.num_steps = run.plan->num_steps(),
                               .steps_per_epoch = run.plan->batches().steps_per_epoch()},
                     run.replicas->parameters().model().objectives());
  }
  if (run.checkpoint.empty()) return;
  tried_step_ = saved_step_ = run.state.step;
  saved_path_ = run.checkpoint;
}

void RunWriter::add(const StepReport& report) {
  add_to_metrics([&] { metrics_->add(report); });
}

void RunWriter::add(const Evaluation& evaluation) {
  add_to_metrics([&] { metrics_->add(run_.state.step, evaluation); });
}

void RunWriter::save() {
  const auto failure = try_to_save();
  if (!failure) return;
  if (!goes_on_without()) throw base::UserError(*failure);
  observer_.on_note(*failure);
}

void RunWriter::save_last() {
  if (saved_step_ == run_.state.step) return;
  if (const auto failure = try_to_save()) throw base::UserError(*failure);
}

void RunWriter::save_before_error() {
  if (tried_step_ == run_.state.step) return;
  if (const auto failure = try_to_save()) observer_.on_note(*failure);
}

std::optional<std::string> RunWriter::try_to_save() {
  const TrainingState& state = run_.state;
  tried_step_ = state.step;
  std::string path;
  if (const auto failure = mendable_failure_of([&] { path = write_checkpoint(); })) {
    return fmt::format("a checkpoint of step {} could not be written: {}; the last checkpoint: {}",
                       state.step, *failure, saved_path_);
  }
  // Not before: who tells of a hang tells of the last checkpoint too.
  saved_path_ = path;
  saved_step_ = state.step;
  observer_.on_checkpoint(state.step, saved_path_);
  return std::nullopt;
}

std::string RunWriter::write_checkpoint() {
  HangWatch::Activity writing(
      watch_,
      fmt::format("writing the checkpoint of step {} hangs: nothing has been written", run_.state.step));
  const auto tell = [&](JointPhase phase) { phase == JointPhase::Works ? writing.get_on() : writing.rest(); };
  do_together(run_.processes, tell, [&] {
    if (!metrics_) return;
    metrics_->sync();
    run_.tuning.save(run_.tuned_streams());  // before the checkpoint that was computed with it
  });
  return checkpoints_.save(run_.state, run_.plan->program().model, run_.replicas->tensors(), run_.processes,
                           tell);
}

void RunWriter::require_metrics() const {
  if (fatal_) throw base::UserError(*fatal_);
}

void RunWriter::add_to_metrics(base::FunctionRef<void()> add) {
  if (!metrics_ || fatal_) return;
  const auto watched = [&] {
    const HangWatch::Activity writing(watch_, "writing metrics hangs: nothing has been written");
    add();
  };
  const auto failure = mendable_failure_of(watched);
  const bool is_told = are_metrics_missing_;
  are_metrics_missing_ = failure.has_value();
  if (failure) {
    const std::string what =
        fmt::format("metrics of step {} could not be written: {}; the last checkpoint: {}", run_.state.step,
                    *failure, saved_path_);
    if (!goes_on_without()) {
      // A checkpoint of what was trained takes all processes, and a step at which no work waits.
      if (run_.processes.is_alone() && run_.may_save()) throw base::UserError(what);
      fatal_ = what;
      run_.replicas->ask_to_stop();
      return;
    }
    if (!is_told) observer_.on_note(what + "; more is said when they can be written again");
  } else if (is_told) {
    observer_.on_note(fmt::format("metrics are written again, from step {} on", run_.state.step));
  }
}

bool RunWriter::goes_on_without() const {
  return run_.options.checkpoint.on_full_disk == OnFullDisk::Continue &&
         run_.state.step < run_.plan->num_steps();
}

}  // namespace plenum::train
