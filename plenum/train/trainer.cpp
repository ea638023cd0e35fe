#include "plenum/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/function_ref.h"
#include "plenum/base/progress.h"
#include "plenum/base/units.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/prefetch.h"
#include "plenum/describe/flops.h"
#include "plenum/io/checksum.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/tensor/device_error.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/mendable_failure.h"
#include "plenum/train/metrics.h"
#include "plenum/train/pending_steps.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/timeline_file.h"
#include "plenum/train/tuning_file.h"

namespace plenum::train {
namespace {

using Clock = std::chrono::steady_clock;

/// Steps of a GPU that are counted after the next one was asked for.
constexpr std::size_t kGpuLag = 1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Passes on what reading checkpoints has to say.
class ObservedNotes final : public base::Progress {
 public:
  explicit ObservedNotes(TrainingObserver& observer) : observer_(observer) {}
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {}
  void end() override {}
  void note(std::string_view line) override { observer_.on_note(line); }

 private:
  TrainingObserver& observer_;
};

Note note_to(TrainingObserver& observer) {
  return [&observer](std::string_view line) { observer.on_note(line); };
}

/// Padding included, also what a GPU adds to have few shapes.
std::int64_t rows_of(std::span<const batch::StepBatch> batches, tensor::Device device) {
  std::int64_t rows = 0;
  for (const batch::StepBatch& batch : batches) {
    for (const batch::MicroBatch& micro_batch : batch.micro_batches)
      rows += model::computed_rows(micro_batch.num_rows, device);
  }
  return rows;
}

std::string checksum_of_plan(const std::string& path) {
  return path.empty() ? path : io::file_checksum(path);
}

/// Compares the files of a dataset with their checksums, or says that they are too large for that to be
/// quick.
const data::Dataset& require_unchanged(const data::Dataset& dataset, const Note& note) {
  constexpr std::uint64_t kMostVerifiedBytes = std::uint64_t{1} << 30;
  std::uint64_t bytes = 0;
  for (const io::FileRecord& file : dataset.description().files) bytes += file.size_bytes;
  if (bytes > kMostVerifiedBytes) {
    note(fmt::format("{} of data are not compared with their checksums; plenum inspect {} --verify does",
                     base::format_bytes(bytes), dataset.directory()));
    return dataset;
  }
  for (const io::FileRecord& file : dataset.description().files) dataset.verify_file(file.name);
  return dataset;
}

/// One process's part of a run.
class Trainer {
 public:
  Trainer(const RunOptions& options, TrainingObserver& observer);
  TrainingResult run(const std::stop_token& stop);

 private:
  std::optional<FoundCheckpoint> find_checkpoint();
  describe::ModelConfig model() const;
  const RunPlan& require_memory() const;
  std::vector<TunedStream> tuned_streams() const;
  void restore_or_begin();
  /// What whoever asks for more steps should know before them.
  void note_surprises() const;
  RunSummary summary() const;
  HangWatch hang_watch();
  /// Where it hangs, and where the run goes on.
  std::string hang_text(const pipeline::Failure& hang) const;

  /// Trains, and saves what was trained. What went wrong meanwhile is thrown when that is done.
  void train_and_save(const std::stop_token& stop);
  /// Whether to stop after it.
  bool train_step(data::Prefetch& batches, const std::stop_token& stop);
  /// The steps that are left, until one is the last or a stop is asked for; whether it is.
  bool train_steps(const std::stop_token& stop);
  /// Asks for the next step, without waiting for what comes of it. Returns its number, from 1.
  std::uint64_t begin_step(data::Prefetch& batches);
  /// Waits for a step, and counts it.
  StepReport collect(const PendingStep& step);
  void record(const StepReport& report);
  /// Collects and records a step, and tells everybody; whether some rank asked to stop.
  bool end_step(const PendingStep& step);
  void evaluate(const std::stop_token& stop);
  /// Writes a checkpoint. Returns a line that says why it could not be written, if so.
  std::optional<std::string> save();
  /// Saves what was trained before an error, as far as that can be done.
  void save_before_error();
  /// Throws UserError unless the run is to go on without what could not be written.
  void go_on_without(std::string_view what);
  /// Adds to the metrics, or goes on without where that was asked for.
  void add_to_metrics(base::FunctionRef<void()> add);
  bool is_time_up() const;
  bool is_on_gpu() const { return plan_.program().device == tensor::Device::Cuda; }
  bool is_due(std::uint64_t step, std::uint64_t every) const {
    return step == plan_.num_steps() || (every > 0 && step % every == 0);
  }
  bool is_traced(std::uint64_t step) const {
    return !options_.run.process.trace.empty() &&
           step - first_step_ == static_cast<std::uint64_t>(options_.run.process.trace_step);
  }

  const Clock::time_point begin_ = Clock::now();
  const RunOptions& options_;
  TrainingObserver& observer_;
  DeviceMemory device_memory_;  ///< first: without the device nothing is touched
  data::Dataset dataset_;
  std::string packing_plan_;  ///< checksum of its file; empty without one
  RunDirectory directory_;
  CheckpointStore checkpoints_;
  TuningFile tuning_;
  std::optional<FoundCheckpoint> found_;
  RunPlan plan_;
  Replicas replicas_;
  std::optional<model::BertInference> inference_;
  TrainingState state_;
  std::optional<Metrics> metrics_;  ///< once the run's directory is made
  std::uint64_t first_step_ = 0;
  PendingSteps pending_;
  bool is_sound_ = true;           ///< no step broke off: weights are what the steps asked for make of them
  Clock::time_point end_of_step_;  ///< of the last that ended, with what followed it
  double last_step_seconds_ = 0;
  double longest_pause_seconds_ = 0;  ///< for evaluation and checkpoint
  double time_limit_seconds_ = std::numeric_limits<double>::infinity();
  std::uint64_t tried_step_ = 0;  ///< the last of which a checkpoint was to be written
  std::uint64_t saved_step_ = 0;
  std::string saved_path_ = "none";
  std::optional<Evaluation> evaluation_;
};

Trainer::Trainer(const RunOptions& options, TrainingObserver& observer)
    : options_(options),
      observer_(observer),
      device_memory_(options.run.device),
      dataset_(options.data.directory),
      packing_plan_(checksum_of_plan(options.data.packing_plan)),
      directory_(options, require_unchanged(dataset_, note_to(observer))),
      checkpoints_(options.run.directory, static_cast<std::size_t>(options.checkpoint.keep)),
      tuning_(directory_.paths().tuning),
      found_(find_checkpoint()),
      plan_(options, dataset_, model()),
      replicas_(require_memory().schedule(), plan_.program(), hang_watch()),
      state_(found_ ? found_->state : TrainingState{}),
      pending_(is_on_gpu() ? kGpuLag : 0) {
  const ProcessSettings& process = options.run.process;
  if (!process.stop_after.empty())
    time_limit_seconds_ = base::parse_seconds(process.stop_after, "stop-after");
  if (!process.trace.empty()) require_timeline_path(process.trace, options.run.directory);
  restore_or_begin();
  if (const auto& held_out = plan_.held_out()) {
    inference_.emplace(plan_.program().model, held_out->capacity(), plan_.evaluation_threads(),
                       replicas_.weights(), plan_.program().device);
  } else {
    observer.on_note("no data is held out, so nothing is evaluated; plenum prepare --holdout 1% does");
  }
  // A run that begins anew measures anew: what lies there may be of another configuration.
  if (found_) tuning_.restore(tuned_streams(), note_to(observer));
  directory_.make();
  metrics_.emplace(directory_.paths(), state_.step);
}

std::optional<FoundCheckpoint> Trainer::find_checkpoint() {
  ObservedNotes notes(observer_);
  std::optional<FoundCheckpoint> found = checkpoints_.find_latest(notes);
  if (!found) return found;
  directory_.require_same(found->state.options);
  base::require(found->state.fingerprint == dataset_.description().fingerprint,
                "{} was trained on other data than {} holds; give the dataset it was begun with, or choose "
                "another --run",
                options_.run.directory, options_.data.directory);
  base::require(
      found->state.packing_plan == packing_plan_,
      "{} was trained with another packing plan than {}; give the plan it was begun with, or choose "
      "another --run",
      options_.run.directory, packing_plan_.empty() ? "none" : options_.data.packing_plan + " now holds");
  return found;
}

describe::ModelConfig Trainer::model() const {
  return found_ ? found_->model : starting_model(options_.model, dataset_);
}

const RunPlan& Trainer::require_memory() const {
  plan_.require_memory(device_memory_.available_bytes());
  return plan_;
}

std::vector<TunedStream> Trainer::tuned_streams() const {
  std::vector<TunedStream> streams{{"training", replicas_.stream()}};
  if (inference_) streams.push_back({"evaluation", inference_->stream()});
  return streams;
}

void Trainer::restore_or_begin() {
  if (found_) {
    load(*found_, replicas_.tensors());
    tried_step_ = saved_step_ = state_.step;
    saved_path_ = found_->directory;
    observer_.on_note(fmt::format("goes on from {}", saved_path_));
  } else {
    base::ThreadPool pool(plan_.evaluation_threads());
    replicas_.write_weights([&](const tensor::TensorView& weights_N) {
      write_starting_weights(options_.model, plan_.program().model, replicas_.parameters(),
                             plan_.program().seed, pool, weights_N, note_to(observer_));
    });
    state_.seed = plan_.program().seed;
    state_.fingerprint = dataset_.description().fingerprint;
    state_.packing_plan = packing_plan_;
  }
  state_.options = directory_.kept_options();
  first_step_ = state_.step;
  replicas_.begin(state_.step, state_.num_updates);
}

void Trainer::note_surprises() const {
  for (const std::string& change : directory_.changes()) observer_.on_note(change);
  const std::uint64_t num_left = plan_.num_steps() - first_step_;
  if (!options_.run.process.trace.empty() &&
      static_cast<std::uint64_t>(options_.run.process.trace_step) > num_left) {
    observer_.on_note(fmt::format("{} will not be drawn: --trace-step is {}, and {} left",
                                  options_.run.process.trace, options_.run.process.trace_step,
                                  num_left == 1 ? "1 step is" : fmt::format("{} steps are", num_left)));
  }
}

RunSummary Trainer::summary() const {
  return {.first_step = first_step_,
          .num_steps = plan_.num_steps(),
          .steps_per_epoch = plan_.batches().steps_per_epoch(),
          .model = plan_.program().model,
          .num_parameters = replicas_.parameters().num_parameters(),
          .num_ranks = plan_.batches().num_ranks(),
          .threads_per_rank = plan_.program().num_threads,
          .micro_batches_per_rank = plan_.batches().micro_batches_per_rank(),
          .expected_tokens_per_step = plan_.batches().expected_tokens_per_step(),
          .gpu = is_on_gpu() ? tensor::cuda_device_info().name : "",
          .memory = plan_.memory(),
          .device_memory = device_memory_};
}

HangWatch Trainer::hang_watch() {
  const std::chrono::duration<double> limit(
      base::parse_seconds(options_.run.process.hang_limit, "hang-limit"));
  return {.limit = std::chrono::ceil<std::chrono::milliseconds>(limit),
          .on_stuck = [this](const pipeline::Failure& hang) { observer_.on_hang(hang_text(hang)); }};
}

std::string Trainer::hang_text(const pipeline::Failure& hang) const {
  return fmt::format("{}; give the command again to go on from step {}; the last checkpoint: {}",
                     pipeline::failure_text(hang), saved_step_, saved_path_);
}

TrainingResult Trainer::run(const std::stop_token& stop) {
  // A run that is longer than asked for stays what it is.
  if (state_.step <= plan_.num_steps()) directory_.write_config();
  if (state_.step < plan_.num_steps()) note_surprises();
  observer_.on_begin(summary());
  try {
    train_and_save(stop);
  } catch (const tensor::DeviceError& error) {
    base::fail("{}; give the command again to go on from step {}; the last checkpoint: {}", error.what(),
               saved_step_, saved_path_);
  } catch (const pipeline::ExecutionError& error) {
    if (!error.failure().is_hang) throw;
    throw HangError(hang_text(error.failure()));
  }
  const bool is_finished = state_.step >= plan_.num_steps();
  return {.end = is_finished ? TrainingResult::End::Finished : TrainingResult::End::Stopped,
          .first_step = first_step_,
          .step = state_.step,
          .num_steps = plan_.num_steps(),
          .checkpoint = saved_path_,
          .evaluation = evaluation_,
          .best_loss = state_.best_loss,
          .best_step = state_.best_step,
          .memory = plan_.memory(),
          .used_bytes = device_memory_.used_bytes()};
}

void Trainer::train_and_save(const std::stop_token& stop) {
  try {
    train_steps(stop);
  } catch (const tensor::DeviceError&) {
    // What lies in its memory, and so what was trained since the last checkpoint, is not to be trusted.
    throw;
  } catch (const base::UserError&) {
    save_before_error();
    throw;
  }
  if (saved_step_ == state_.step) return;
  if (const auto failure = save()) throw base::UserError(*failure);
}

bool Trainer::train_steps(const std::stop_token& stop) {
  if (state_.step >= plan_.num_steps()) return false;
  const std::stop_callback on_stop(stop, [this] { replicas_.ask_to_stop(); });
  data::Prefetch batches(plan_.batches(), state_.step);
  while (state_.step < plan_.num_steps()) {
    if (train_step(batches, stop)) return true;
  }
  return false;
}

bool Trainer::train_step(data::Prefetch& prefetch, const std::stop_token& stop) {
  const bool is_last = is_time_up();
  if (is_last) replicas_.ask_to_stop();
  const std::uint64_t step = begin_step(prefetch);
  // A GPU goes on with the next step while this one is counted, unless something is to be done between them.
  const bool is_pause = is_due(step, plan_.num_steps()) || is_due(step, plan_.evaluate_every()) ||
                        is_due(step, plan_.checkpoint_every()) || is_traced(step);
  const bool is_all_due = is_pause || is_last || stop.stop_requested();
  const bool is_stop_asked = pending_.count(is_all_due ? PendingSteps::Due::All : PendingSteps::Due::ButLag,
                                            [this](const PendingStep& pending) { return end_step(pending); });
  if (!pending_.is_empty()) return false;
  if (is_traced(step)) {
    write_timeline(options_.run.process.trace, replicas_.timeline(fmt::format("step {}, measured", step)));
  }
  evaluation_.reset();
  // Who asks for a stop waits for a checkpoint, which run() writes, and for nothing else.
  if (is_stop_asked || stop.stop_requested()) return true;
  const Clock::time_point pause = Clock::now();
  if (inference_ && is_due(step, plan_.evaluate_every())) evaluate(stop);
  if (is_due(step, plan_.checkpoint_every()) && state_.skipped_in_a_row == 0) {
    if (const auto failure = save()) go_on_without(*failure);
  }
  longest_pause_seconds_ = std::max(longest_pause_seconds_, seconds_since(pause));
  end_of_step_ = Clock::now();
  return stop.stop_requested();
}

std::uint64_t Trainer::begin_step(data::Prefetch& prefetch) {
  const Clock::time_point begin = Clock::now();
  const std::uint64_t index = state_.step + pending_.size();
  const std::vector<batch::StepBatch> batches = prefetch.take();
  const batch::Work& work = batches.front().global;
  is_sound_ = false;
  const double learning_rate = plan_.learning_rate().at(index);
  pending_.add({.begin = begin,
                .learning_rate = learning_rate,
                .work = work,
                .padded_tokens = rows_of(batches, plan_.program().device) - work.tokens});
  replicas_.step(batches, learning_rate,
                 is_traced(index + 1) ? pipeline::DeviceTimes::Recorded : pipeline::DeviceTimes::Skipped);
  is_sound_ = true;
  return index + 1;
}

StepReport Trainer::collect(const PendingStep& step) {
  const pipeline::StepOutcome outcome = replicas_.outcome(state_.step);
  // What ran while another step ran before it did not begin earlier than that ended.
  last_step_seconds_ = seconds_since(std::max(step.begin, end_of_step_));
  end_of_step_ = Clock::now();
  ++state_.step;
  state_.num_updates = outcome.num_updates;
  state_.tokens += static_cast<std::uint64_t>(step.work.tokens);
  state_.sequences += static_cast<std::uint64_t>(step.work.sequences);
  if (outcome.is_skipped) {
    ++state_.skipped_steps;
    ++state_.skipped_in_a_row;
  } else {
    state_.skipped_in_a_row = 0;
  }
  return {.step = state_.step,
          .outcome = outcome,
          .learning_rate = step.learning_rate,
          .work = step.work,
          .padded_tokens = step.padded_tokens,
          .seconds = last_step_seconds_,
          .flops = describe::training_flops(plan_.program().model, step.work)};
}

void Trainer::record(const StepReport& report) {
  add_to_metrics([&] { metrics_->add(report); });
}

bool Trainer::end_step(const PendingStep& step) {
  const StepReport report = collect(step);
  record(report);
  observer_.on_step(report);
  if (report.outcome.is_skipped) {
    observer_.on_note(fmt::format("step {} is skipped: loss {}, gradient norm {}", report.step,
                                  report.outcome.loss(), report.outcome.gradient_norm));
    base::require(state_.skipped_in_a_row < static_cast<std::uint64_t>(options_.run.max_skipped_steps),
                  "{} steps in a row were skipped for a loss or gradient that is not finite; a lower "
                  "--learning-rate or a longer --warmup helps; the last good checkpoint: {}",
                  state_.skipped_in_a_row, saved_path_);
  }
  return report.outcome.is_stop_asked;
}

void Trainer::evaluate(const std::stop_token& stop) {
  evaluation_ = train::evaluate(*inference_, *plan_.held_out(), stop);
  if (!evaluation_) return;
  if (std::isfinite(evaluation_->loss()) && (!state_.best_loss || evaluation_->loss() < *state_.best_loss)) {
    state_.best_loss = evaluation_->loss();
    state_.best_step = state_.step;
  }
  add_to_metrics([&] { metrics_->add(state_.step, *evaluation_); });
  observer_.on_evaluation(state_.step, *evaluation_);
}

std::optional<std::string> Trainer::save() {
  tried_step_ = state_.step;
  const auto failure = mendable_failure_of([this] {
    metrics_->sync();
    tuning_.save(tuned_streams());  // before the checkpoint that was computed with it
    saved_path_ = checkpoints_.save(state_, plan_.program().model, replicas_.tensors());
    saved_step_ = state_.step;
  });
  if (failure) {
    return fmt::format("a checkpoint of step {} could not be written: {}; the last checkpoint: {}",
                       state_.step, *failure, saved_path_);
  }
  observer_.on_checkpoint(state_.step, saved_path_);
  return std::nullopt;
}

/// What was trained so far is not lost to what came after it, unless it is what went wrong.
void Trainer::save_before_error() {
  if (!is_sound_) return;
  pending_.count(PendingSteps::Due::All, [this](const PendingStep& step) {
    record(collect(step));
    return false;
  });
  if (tried_step_ == state_.step || state_.skipped_in_a_row > 0) return;
  if (const auto failure = save()) observer_.on_note(*failure);
}

void Trainer::add_to_metrics(base::FunctionRef<void()> add) {
  if (const auto failure = mendable_failure_of(add)) {
    go_on_without(fmt::format("metrics of step {} could not be written: {}; the last checkpoint: {}",
                              state_.step, *failure, saved_path_));
  }
}

void Trainer::go_on_without(std::string_view what) {
  const bool goes_on =
      options_.checkpoint.on_full_disk == OnFullDisk::Continue && state_.step < plan_.num_steps();
  if (!goes_on) throw base::UserError(what);
  observer_.on_note(what);
}

/// One more step, with what may follow it, must end within the limit.
bool Trainer::is_time_up() const {
  return seconds_since(begin_) + last_step_seconds_ + longest_pause_seconds_ >= time_limit_seconds_;
}

}  // namespace

TrainingResult train(const RunOptions& options, TrainingObserver& observer, const std::stop_token& stop) {
  options.check();
  return Trainer(options, observer).run(stop);
}

}  // namespace plenum::train
