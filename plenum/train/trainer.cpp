#include "plenum/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/data/batches/prefetch.h"
#include "plenum/io/file.h"
#include "plenum/tensor/cuda_range.h"
#include "plenum/tensor/device_error.h"
#include "plenum/trace/overlay.h"
#include "plenum/train/agreement.h"
#include "plenum/train/best_evaluation.h"
#include "plenum/train/fine_tuning.h"
#include "plenum/train/hang_watch.h"
#include "plenum/train/mendable_failure.h"
#include "plenum/train/run.h"
#include "plenum/train/run_beginning.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/run_events.h"
#include "plenum/train/run_policy.h"
#include "plenum/train/run_warnings.h"
#include "plenum/train/run_writer.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/step_check.h"
#include "plenum/train/step_overlay.h"
#include "plenum/train/step_record.h"
#include "plenum/train/step_timeline.h"
#include "plenum/train/timeline_file.h"

namespace plenum::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What whoever asks for more steps should know before them.
void note_surprises(const Run& run, TrainingObserver& observer) {
  if (run.plan->program().device == tensor::Device::Cpu) {
    const std::optional<std::string> warning = core_warning(run.processes, run.plan->program().num_threads,
                                                            static_cast<std::size_t>(base::usable_cores()));
    if (warning) observer.on_note(*warning);
  }
  if (!run.directory) return;
  for (const std::string& change : run.directory->changes()) observer.on_note(change);
  for (const std::string& warning : warnings_of(run.options, *run.plan, run.state)) observer.on_note(warning);
}

/// Counts a step in what training remembers.
void count(const StepReport& report, TrainingState& state) {
  state.step = report.step;
  state.num_updates = report.outcome.num_updates;
  state.tokens += static_cast<std::uint64_t>(report.work.tokens);
  state.sequences += static_cast<std::uint64_t>(report.work.sequences);
  state.skipped_steps += report.outcome.is_skipped ? 1 : 0;
  state.skipped_in_a_row = report.outcome.is_skipped ? state.skipped_in_a_row + 1 : 0;
}

/// Loops over the steps of an opened run.
class Trainer {
 public:
  /// Borrows the first two.
  Trainer(Run& run, RunEvents& events, std::stop_token stop)
      : run_(run),
        events_(events),
        observer_(events),
        stop_(std::move(stop)),
        first_step_(run.state.step),
        first_tokens_(run.state.tokens),
        drawn_step_(drawn_step(run)),
        policy_(cadence_of(run)),
        agreement_(*run.between_steps),
        watch_(run.options.hang_limit(),
               [this](const std::string& what) { observer_.on_hang(with_way_on(what)); }),
        writer_(run, events, watch_),
        watching_([this](const std::stop_token& gone) { watch_.watch(gone); }) {
    if (run.processes.say())
      telling_ = std::jthread([this](const std::stop_token& gone) { tell_others(gone); });
    run.replicas->on_stuck([this](const pipeline::Failure& hang) { observer_.on_hang(hang_text(hang)); });
  }

  TrainingResult train();

 private:
  void tell_of_beginning();
  void tell_of_end();
  /// Says every so often what this process does.
  void tell_others(const std::stop_token& gone) const;
  /// What went wrong, and where the run resumes.
  std::string with_way_on(std::string_view what) const;
  std::string hang_text(const pipeline::Failure& hang) const {
    return with_way_on(pipeline::failure_text(hang));
  }
  bool is_no_better() const {
    const std::int64_t most = run_.options.evaluation.stop_when_worse;
    return most > 0 && run_.state.worse_in_a_row >= static_cast<std::uint64_t>(most);
  }
  TrainingResult::End end() const;
  bool is_finished() const { return run_.state.step >= run_.plan->num_steps() || is_no_better(); }
  /// Whether the process before stopped where an evaluation was due, and left it to this one.
  bool is_evaluation_owed() const;
  /// Trains, and saves what was trained. What went wrong meanwhile is thrown when that is done.
  void train_and_save();
  /// The steps that are left, until one is the last or a stop is asked for.
  void train_steps();
  /// Begins a step, counts those that are due, and does what is to be done before the next. Whether to stop
  /// after it.
  bool train_step(data::Prefetch& batches);
  /// Asks for the next step, without waiting for what comes of it. Returns its number, from 1.
  std::uint64_t begin_step(data::Prefetch& batches);
  /// The data of a step, waiting for it if need be.
  std::vector<batch::StepBatch> take(data::Prefetch& batches, std::uint64_t index);
  /// Waits for the oldest step under way, and counts and records it.
  StepReport end_step();
  /// Tells everybody of a step.
  void tell(const StepReport& report);
  /// Whether to stop after it.
  bool pause(const Pause& pause);
  /// Draws the step that was just done, as far as that is asked for.
  void draw(const Pause& pause);
  /// Compares a step with what was predicted for it before the run, and says if that was far off.
  void check(const MeasuredStep& step);
  /// Keeps a step's times in the run's directory.
  void keep(const StepRecord& record);
  /// Says how well steps were predicted, once.
  void tell_of_overlay();
  /// Says what was to be drawn and was not, because the run ended before.
  void tell_of_undrawn(const std::string& path);
  /// Whether to go on after it: all processes cut it short together, before the same batch, if one of them is
  /// asked to stop meanwhile.
  bool evaluate();
  void save();
  /// Saves what was trained before an error, as far as that can be done.
  void save_before_error();

  Run& run_;
  RunEvents& events_;
  TrainingObserver& observer_;  ///< who is told by way of them
  const std::stop_token stop_;
  const std::uint64_t first_step_;
  const std::uint64_t first_tokens_;  ///< that the run was trained on before
  const std::uint64_t drawn_step_;
  const RunPolicy policy_;
  Agreement agreement_;
  Agreed agreed_;  ///< since the last step that might be paused after
  HangWatch watch_;
  RunWriter writer_;
  RunTimes times_;
  Clock::time_point begin_ = run_.begin;            ///< of the first step
  std::optional<double> loss_;                      ///< of the last step
  Clock::time_point last_checkpoint_ = run_.begin;  ///< or when the run began, as the next
  Clock::time_point last_evaluation_ = run_.begin;
  std::optional<Evaluation> evaluation_;  ///< of the last step, where it was evaluated
  std::optional<StepOverlay> overlay_;    ///< in the first process, while steps are measured for it
  std::optional<StepCheck> check_;        ///< likewise
  // Last, so that they end before what they tell of.
  std::jthread watching_;
  std::jthread telling_;
};

TrainingResult Trainer::train() {
  // A run that is longer than asked for stays what it is.
  if (run_.directory) {
    if (run_.state.step <= run_.plan->num_steps()) run_.directory->write_config(run_.processes);
    for (const std::string& part : run_.directory->mended()) observer_.on_note(part);
  }
  tell_of_beginning();
  begin_ = Clock::now();
  try {
    train_and_save();
  } catch (const tensor::DeviceError& error) {
    events_.add("error", error.what());
    base::fail("{}", with_way_on(error.what()));
  } catch (const pipeline::ExecutionError& error) {
    events_.add("error", error.what());
    if (!error.failure().is_hang) throw;
    throw HangError(hang_text(error.failure()));
  } catch (const std::exception& error) {
    events_.add("error", error.what());
    throw;
  }
  tell_of_end();
  return {.end = end(),
          .first_step = first_step_,
          .step = run_.state.step,
          .num_steps = run_.plan->num_steps(),
          .loss = loss_,
          .seconds = seconds_since(begin_),
          .tokens = run_.state.tokens - first_tokens_,
          .checkpoint = writer_.saved_path(),
          .evaluation = evaluation_,
          .best_loss = run_.state.best_loss,
          .best_score = run_.state.best_score,
          .best_step = run_.state.best_step,
          .memory = run_.plan->memory_of_steps(),
          .used_bytes = run_.device_memory.used_bytes()};
}

void Trainer::tell_of_beginning() {
  if (is_finished() && !is_evaluation_owed()) return;
  if (!run_.checkpoint.empty() && run_.processes.is_first())
    observer_.on_note(fmt::format("resumes from {}", run_.checkpoint));
  if (!is_finished()) note_surprises(run_, observer_);
  const RunSummary summary = summarise(run_);
  if (run_.directory && !is_finished()) {
    events_.open(run_.directory->paths().events, watch_,
                 {.step = run_.state.step,
                  .checkpoint = run_.checkpoint,
                  .details = describe_beginning(run_, summary)});
  }
  observer_.on_begin(summary);
}

void Trainer::tell_of_end() {
  tell_of_overlay();
  const ProcessSettings& process = run_.options.run.process;
  for (const std::string& path : {process.trace, process.overlay}) tell_of_undrawn(path);
  if (run_.state.step == first_step_) return;
  const TrainingResult::End end = this->end();
  const char* const kind = end == TrainingResult::End::Finished   ? "finish"
                           : end == TrainingResult::End::NoBetter ? "no better"
                                                                  : "stop";
  events_.add(kind, "", events_.memory_details());
}

void Trainer::tell_others(const std::stop_token& gone) const {
  constexpr std::chrono::milliseconds kInterval{200};
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  run_.processes.say()(fmt::format("step {}: has not begun", first_step_ + 1));
  while (!gone.stop_requested()) {
    std::string action = run_.replicas->where();
    if (action.empty()) action = watch_.under_way();
    // Between two of them the last one stays what the others know.
    if (!action.empty()) run_.processes.say()(action);
    woken.wait_for(lock, gone, kInterval, [] { return false; });
  }
}

TrainingResult::End Trainer::end() const {
  if (run_.state.step >= run_.plan->num_steps()) return TrainingResult::End::Finished;
  return is_no_better() ? TrainingResult::End::NoBetter : TrainingResult::End::Stopped;
}

std::string Trainer::with_way_on(std::string_view what) const {
  return fmt::format("{}; give the command again to resume from step {}; the last checkpoint: {}", what,
                     writer_.saved_step(), writer_.saved_path());
}

void Trainer::train_and_save() {
  try {
    train_steps();
  } catch (const tensor::DeviceError&) {
    // What lies in its memory, and so what was trained since the last checkpoint, is not to be trusted.
    throw;
  } catch (const base::UserError&) {
    // Of several processes one alone cannot save.
    if (run_.processes.is_alone()) save_before_error();
    throw;
  }
  writer_.save_last();
  writer_.require_metrics();
}

bool Trainer::is_evaluation_owed() const {
  const TrainingState& state = run_.state;
  return run_.inference && state.step > 0 && state.step <= run_.plan->num_steps() &&
         state.evaluated_step < state.step && policy_.due_after(state.step).is_evaluated;
}

void Trainer::train_steps() {
  const std::stop_callback on_stop(stop_, [this] { run_.replicas->ask_to_stop(); });
  const bool is_saved = run_.state.skipped_in_a_row == 0;
  if (is_evaluation_owed() && pause({.is_evaluated = true, .is_saved = is_saved})) return;
  if (is_finished()) return;
  data::Prefetch batches(run_.plan->batches(), run_.state.step, run_.plan->replica(), run_.exchange.get());
  bool is_stopped = false;
  while (!is_stopped && !is_finished()) is_stopped = train_step(batches);
}

bool Trainer::train_step(data::Prefetch& batches) {
  const std::uint64_t step = begin_step(batches);
  // A GPU goes on with the next step while this one is counted, unless something is to be done between them.
  const Pause due = policy_.due_after(step);
  while (run_.replicas->num_under_way() > policy_.most_uncounted(due, agreed_)) {
    const StepReport report = end_step();
    agreed_.add(report.outcome);
    tell(report);
  }
  if (run_.replicas->num_under_way() > 0) return false;
  const Pause now = policy_.after(step, agreed_);
  // What is due at the end of a cycle is not forgotten within it.
  if (policy_.may_pause_after(step)) agreed_ = {};
  return pause(now);
}

std::uint64_t Trainer::begin_step(data::Prefetch& batches) {
  const Clock::time_point asked = Clock::now();
  Replicas& replicas = *run_.replicas;
  const std::uint64_t index = replicas.num_begun();
  const std::vector<batch::StepBatch> batch_of_ranks = take(batches, index);
  const Pause due = policy_.due_after(index + 1);
  const bool is_timed = due.is_traced || due.is_measured;
  times_.elapsed_seconds = seconds_since(run_.begin);
  times_.since_checkpoint_seconds = seconds_since(last_checkpoint_);
  times_.since_evaluation_seconds = seconds_since(last_evaluation_);
  replicas.begin_step(batch_of_ranks, {.learning_rate = run_.plan->learning_rate().at(index),
                                       .asked = asked,
                                       .due = policy_.due_by_clock(index + 1, times_),
                                       .device_times = is_timed ? pipeline::DeviceTimes::Recorded
                                                                : pipeline::DeviceTimes::Skipped});
  return index + 1;
}

std::vector<batch::StepBatch> Trainer::take(data::Prefetch& batches, std::uint64_t index) {
  const HangWatch::Activity waiting(
      watch_, fmt::format("step {} hangs: it waits for its data, which has not come", index));
  return batches.take();
}

StepReport Trainer::end_step() {
  const StepReport report = run_.replicas->end_step();
  times_.step_seconds = report.seconds;
  loss_ = report.outcome.known_loss();
  count(report, run_.state);
  writer_.add(report);
  return report;
}

void Trainer::tell(const StepReport& report) {
  observer_.on_step(report);
  if (!report.outcome.is_skipped) return;
  observer_.on_skip(fmt::format("step {} is skipped: loss {}, gradient norm {}", report.step,
                                report.outcome.loss(), report.outcome.gradient_norm));
  base::require(run_.state.skipped_in_a_row < static_cast<std::uint64_t>(run_.options.run.max_skipped_steps),
                "{} steps in a row were skipped for a loss or gradient that is not finite; a lower "
                "--learning-rate or a longer --warmup helps; the last good checkpoint: {}",
                run_.state.skipped_in_a_row, writer_.saved_path());
}

bool Trainer::pause(const Pause& pause) {
  if (pause.is_traced || pause.is_measured) draw(pause);
  evaluation_.reset();
  const Clock::time_point begin = Clock::now();
  bool goes_on = !pause.is_end;
  if (pause.is_evaluated && run_.inference) goes_on &= evaluate();
  const bool is_new_best = evaluation_ && run_.state.best_loss && run_.state.best_step == run_.state.step;
  if (pause.is_saved || (is_new_best && run_.state.skipped_in_a_row == 0)) save();
  times_.pause_seconds = std::max(times_.pause_seconds, seconds_since(begin));
  return !goes_on;
}

void Trainer::draw(const Pause& pause) {
  const MeasuredStep step = run_.replicas->measured();
  if (!run_.processes.is_first()) return;
  if (pause.is_measured && !is_overlaid(run_)) check(step);
  const std::string title = fmt::format("{}, step {}", model_name(run_.options.model), run_.state.step);
  const schedule::Schedule& schedule = run_.plan->schedule();
  if (pause.is_traced)
    write_timeline(run_.options.run.process.trace, timeline_of_step(schedule, step, title + ", measured"));
  if (!pause.is_measured || !is_overlaid(run_)) return;
  if (!overlay_) overlay_.emplace(schedule, drawn_step_);
  overlay_->add(run_.state.step, step);
  if (run_.state.step == drawn_step_) {
    keep({.step = drawn_step_,
          .schedule = schedule.name,
          .source = StepRecord::Source::EarlierSteps,
          .predicted = overlay_->drawn()->predicted,
          .measured = overlay_->drawn()->measured,
          .breakdown = {},
          .waited_seconds = step.waited_seconds});
    if (const std::string& path = run_.options.run.process.overlay; !path.empty())
      write_overlay(path, *overlay_->drawn(), fmt::format("{}, {}", title, schedule.name));
  }
  if (overlay_->num_compared() == StepOverlay::kNumCompared) tell_of_overlay();
}

/// What cannot be kept, for want of room, is not missed.
void Trainer::keep(const StepRecord& record) {
  const HangWatch::Activity writing(watch_, "writing a step's times hangs: nothing has been written");
  static_cast<void>(
      mendable_failure_of([&] { io::write_file(run_.directory->paths().step, step_record_json(record)); }));
}

void Trainer::check(const MeasuredStep& step) {
  if (!check_) check_.emplace(run_.plan->schedule(), *run_.prediction);
  check_->add(run_.state.step - 1, step, times_.step_seconds);
  if (check_->num_compared() < StepCheck::kNumCompared) return;
  keep(check_->record(run_.state.step, step));
  if (const std::optional<std::string> surprise = check_->surprise()) observer_.on_note(*surprise);
}

void Trainer::tell_of_overlay() {
  if (!overlay_ || !overlay_->drawn()) return;
  const StepOverlay::Drawn& drawn = *overlay_->drawn();
  if (const std::string& path = run_.options.run.process.overlay; !path.empty()) {
    observer_.on_table(trace::overlay_text(trace::lay_over(drawn.predicted, drawn.measured)));
    observer_.on_note(fmt::format(
        "{}: the time of {} was predicted from those before with a mean error of {:.1f} %", path,
        overlay_->num_compared() == 1 ? "1 step" : fmt::format("{} steps", overlay_->num_compared()),
        100 * overlay_->mean_error()));
  }
  overlay_.reset();
}

/// Of a step behind the last that was asked for, the beginning told.
void Trainer::tell_of_undrawn(const std::string& path) {
  const bool is_foretold = drawn_step_ > run_.plan->num_steps() && run_.state.step > first_step_;
  if (path.empty() || !run_.processes.is_first() || run_.state.step >= drawn_step_ || is_foretold) return;
  observer_.on_note(fmt::format("{} is not written: step {} was to be drawn, and the run ended after step {}",
                                path, drawn_step_, run_.state.step));
}

void Trainer::save() {
  const tensor::CudaRange range([&] { return fmt::format("checkpoint after step {}", run_.state.step); });
  const Clock::time_point begin = Clock::now();
  writer_.save();
  last_checkpoint_ = Clock::now();
  times_.checkpoint_seconds = std::max(times_.checkpoint_seconds, seconds_since(begin));
}

bool Trainer::evaluate() {
  const tensor::CudaRange range([&] { return fmt::format("evaluation after step {}", run_.state.step); });
  const Clock::time_point begin = Clock::now();
  {
    HangWatch::Activity evaluating(
        watch_,
        fmt::format("the evaluation after step {} hangs: no micro-batch has been done", run_.state.step));
    const auto goes_on = [&] {
      evaluating.get_on();
      return !agreement_.is_wished_by_any(stop_.stop_requested());
    };
    run_.replicas->gather_weights();
    if (run_.replicas->is_put_together() && run_.plan->program().device == tensor::Device::Cuda) {
      std::ranges::copy(run_.replicas->whole_weights_N().span<float>(),
                        run_.inference->weights().span<float>().begin());
    }
    evaluation_ = train::evaluate(*run_.inference, *run_.plan->held_out(), goes_on, run_.between_steps.get(),
                                  {.sequences = run_.data->scored(), .options = &run_.options.task.data});
  }
  last_evaluation_ = Clock::now();
  times_.evaluation_seconds = std::max(times_.evaluation_seconds, seconds_since(begin));
  if (!evaluation_) return false;
  count_evaluation(*evaluation_, run_.options.task.metric, run_.state);
  writer_.add(*evaluation_);
  observer_.on_evaluation(run_.state.step, *evaluation_);
  return true;
}

/// What was trained so far is not lost to what came after it, unless it is what went wrong.
void Trainer::save_before_error() {
  if (run_.replicas->is_broken()) return;
  while (run_.replicas->num_under_way() > 0) end_step();
  if (run_.state.skipped_in_a_row == 0 && run_.may_save()) writer_.save_before_error();
}

}  // namespace

TrainingResult train(const RunOptions& options, TrainingObserver& observer, const std::stop_token& stop,
                     const Connect& connect) {
  require_known_options(options);
  options.check();
  // Nobody wants to hear of them where the run is refused.
  std::vector<std::string> choices;
  std::vector<std::string> notes;
  const Note on_choice = [&](std::string_view line) { choices.emplace_back(line); };
  RunOptions readable = options;
  readable.model = settle_source(options.model, on_choice);
  readable = settle_task(readable, on_choice);
  std::unique_ptr<const TrainingData> data = open_training_data(readable);
  for (const std::string& remark : data->remarks()) on_choice(remark);
  const RunOptions settled = settle_defaults(readable, *data, connect ? 1 : options.run.ranks, on_choice,
                                             [&](std::string_view line) { notes.emplace_back(line); });
  settled.check();  // a device may not do what was asked for
  RunEvents events(observer);
  const Processes processes = connect ? connect(settled, *data) : Processes();
  Run run = open_run(settled, std::move(data), events, processes);
  for (const std::string& note : notes) events.on_note(note);
  for (const std::string& choice : choices) events.on_choice(choice);
  return Trainer(run, events, stop).train();
}

}  // namespace plenum::train
