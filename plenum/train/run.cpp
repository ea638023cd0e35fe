#include "plenum/train/run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/progress.h"
#include "plenum/base/thread_pool.h"
#include "plenum/base/units.h"
#include "plenum/calibrate/machine_file.h"
#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/text/schedule_text.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/filled_schedule.h"
#include "plenum/train/given_schedule.h"
#include "plenum/train/product_rate.h"
#include "plenum/train/rank_balance.h"
#include "plenum/train/run_schedule.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/step_check.h"
#include "plenum/train/step_overlay.h"
#include "plenum/train/timeline_file.h"

namespace plenum::train {
namespace {

/// Steps of a GPU that are counted after the next one was asked for.
constexpr std::size_t kGpuLag = 1;

/// Passes on what reading checkpoints has to say.
class ObservedNotes final : public base::Progress {
 public:
  explicit ObservedNotes(TrainingObserver& observer) : observer_(observer) {}
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {}
  void end() override {}
  void note(std::string_view line) override { observer_.on_note(line); }
  void warn(std::string_view line) override { observer_.on_note(line); }

 private:
  TrainingObserver& observer_;
};

bool is_on_gpu(const Run& run) {
  return run.plan->program().device == tensor::Device::Cuda;
}

/// A run that was begun on a GPU can be resumed without one.
void require_device(const RunOptions& options, const Processes& processes) {
  base::require(!options.run.process.emulate_link ||
                    (processes.is_alone() && options.run.device == tensor::Device::Cpu),
                "--emulate-link is for ranks of one process on the CPU; leave it out");
  if (options.run.device != tensor::Device::Cuda) return;
  base::require(
      !processes.is_alone() || options.run.ranks == 1 || options.run.share_gpu,
      "--gpus starts a process for each GPU; ranks of one process, and {} are asked for, run on the "
      "CPU, or share the one GPU with --share-gpu",
      options.run.ranks);
  const std::optional<std::string> obstacle = tensor::cuda_obstacle();
  base::require(!obstacle, "no GPU can be used: {}; --device cpu trains on the CPU", obstacle.value_or(""));
}

/// For what all processes would say: the first one says it.
Note of_first(const Processes& processes, const Note& note) {
  return processes.is_first() ? note : [](std::string_view) {};
}

/// What is to be drawn must have a place.
void require_drawable(const RunOptions& options) {
  for (const std::string& path : {options.run.process.trace, options.run.process.overlay})
    if (!path.empty()) require_timeline_path(path, options.run.directory);
}

/// Nothing where this process can read the whole dataset itself; it must, unless its shards are dealt out.
std::unique_ptr<data::SequenceExchange> open_exchange(const RunOptions& options, const TrainingData& data,
                                                      const RunPlan& plan, const Processes& processes) {
  const std::vector<bool> here = data.shards_here();
  if (options.data.sharding == data::DataSharding::Local && !processes.is_alone()) {
    return std::make_unique<data::SequenceExchange>(
        plan.batches().sequences(), here, processes.communicator(), plan.mesh().ranks_per_replica());
  }
  base::require(
      std::ranges::find(here, false) == here.end(),
      "{} has not all of the {} shards of its dataset; put all of them there, or give each of several "
      "processes some and all of them --data-sharding local",
      data.name(), here.size());
  return nullptr;
}

/// What a run that begins now remembers of its data.
TrainingState first_state(const RunOptions& options, const TrainingData& data) {
  TrainingState state;
  state.seed = static_cast<std::uint64_t>(options.run.seed);
  state.fingerprint = data.fingerprint();
  if (!options.data.packing_plan.empty()) state.packing_plan = io::file_checksum(options.data.packing_plan);
  return state;
}

/// The checkpoint to resume from, if there is one. Throws UserError if it is of another run than the one that
/// would begin with `first`.
std::optional<FoundCheckpoint> find_checkpoint(const RunOptions& options, const RunDirectory& directory,
                                               const TrainingData& data, const TrainingState& first,
                                               TrainingObserver& observer) {
  ObservedNotes notes(observer);
  std::optional<FoundCheckpoint> found = CheckpointStore(options.run.directory, 1).find_latest(notes);
  if (!found) return found;
  base::require(
      !directory.lost_config() || !found->state.options.empty(),
      "{} has no config.toml, and its checkpoints are of an earlier version and do not say how they "
      "came about; put it back, or choose another --run",
      options.run.directory);
  directory.require_same(found->state.options);
  base::require(found->state.fingerprint == first.fingerprint,
                "{} was trained on other data than {} holds; give the dataset it was begun with, or choose "
                "another --run",
                options.run.directory, data.name());
  base::require(
      found->state.packing_plan == first.packing_plan,
      "{} was trained with another packing plan than {}; give the plan it was begun with, or choose "
      "another --run",
      options.run.directory, first.packing_plan.empty() ? "none" : options.data.packing_plan + " now holds");
  return found;
}

/// That of the first process, in all of them.
std::optional<FoundCheckpoint> shared_checkpoint(std::optional<FoundCheckpoint> found,
                                                 const Processes& processes) {
  const std::string directory = processes.from_first(found ? found->directory : "");
  if (processes.is_first() || directory.empty()) return found;
  return describe_checkpoint(directory);
}

std::unique_ptr<RunPlan> plan_run(const RunOptions& options, const TrainingData& data,
                                  const std::optional<FoundCheckpoint>& found,
                                  const DeviceMemory& device_memory, const Processes& processes,
                                  const Note& note) {
  const std::optional<schedule::Schedule> given = read_given_schedule(options, processes, note);
  const auto plan_with = [&](double attention_cost) {
    return std::make_unique<RunPlan>(options, data,
                                     found ? found->model : starting_model(options.model, data),
                                     processes.rank(), attention_cost, given);
  };
  const bool is_settled = found || options.data.attention_cost;
  std::unique_ptr<RunPlan> plan =
      plan_with(options.data.attention_cost.value_or(found ? found->state.attention_cost : 1));
  plan->require_memory(device_memory.available_bytes());
  if (!is_settled) {
    const double chosen = choose_attention_cost(*plan, plan_with, processes, note);
    if (chosen != 1) plan = plan_with(chosen);
  }
  return plan;
}

/// Nothing, and a note, where it cannot be measured: a run that has room for itself is not refused for want
/// of room to measure. Of several processes the others wait for what this one would measure with them, so all
/// end.
std::optional<plan::Cluster> measured_cluster(const RunPlan& plan, const Processes& processes,
                                              const Note& note) {
  constexpr double kSeconds = 1;
  try {
    return measure_cluster(plan, processes, kSeconds);
  } catch (const base::UserError& error) {
    if (!processes.is_alone()) throw;
    note(fmt::format("steps are not predicted: {}", error.what()));
    return std::nullopt;
  }
}

/// Of the run's steps, on the machine of --machine or on this one as it is measured now; null where the first
/// process shows no progress, and where measuring would not tell: of GPUs that talk to each other.
std::unique_ptr<StepPrediction> predict(const RunOptions& options, const RunPlan& plan,
                                        const Processes& processes, const Note& note) {
  const ProcessSettings& process = options.run.process;
  const std::size_t num_ranks = plan.mesh().num_ranks();
  const bool is_wanted = !processes.from_first(process.quiet ? "" : "wanted").empty();
  if (!is_wanted || plan.num_steps() <= StepCheck::kNumBefore) return nullptr;
  if (process.machine.empty() && plan.program().device == tensor::Device::Cuda && num_ranks > 1)
    return nullptr;
  std::optional<plan::Cluster> cluster =
      process.machine.empty()
          ? measured_cluster(plan, processes, note)
          : calibrate::read_cluster(process.machine,
                                    {.ranks = num_ranks, .threads = plan.program().num_threads});
  if (!cluster) return nullptr;
  if (process.emulate_link) slow_down(*cluster, *process.emulate_link);
  return std::make_unique<StepPrediction>(plan, *std::move(cluster));
}

/// Keeps a schedule that cannot be made again from options alone.
void keep_schedule(const Run& run) {
  const bool is_from_options = run.options.fill() == BubbleFill::Off && !run.options.has_schedule_file();
  if (!run.directory || is_from_options) return;
  const std::string path = run.directory->paths().schedule;
  const std::string text = schedule::print_schedule_text(run.plan->schedule());
  if (!io::path_exists(path) || io::read_file(path) != text) io::write_file(path, text);
}

/// Gives the ranks the weights and moments of a checkpoint; returns where the run stands with them.
TrainingState resume(const FoundCheckpoint& found, Replicas& replicas) {
  replicas.load(found);
  replicas.begin(found.state.step, found.state.num_updates);
  return found.state;
}

/// Gives the ranks the weights that a run begins with.
TrainingState begin_anew(const RunOptions& options, const RunPlan& plan, Replicas& replicas,
                         TrainingState first, const Note& note) {
  base::ThreadPool pool(plan.evaluation_threads());
  replicas.write_weights([&](const tensor::TensorView& weights_N) {
    write_starting_weights(options.model, plan.program().model.task, replicas.parameters(),
                           plan.program().seed, pool, weights_N, note);
  });
  replicas.begin(0, 0);
  return first;
}

/// Nothing where no data is held out.
std::unique_ptr<model::BertInference> open_inference(const RunPlan& plan, const Replicas& replicas,
                                                     const TrainingData& data, const Note& note) {
  if (const auto& held_out = plan.held_out()) {
    // Weights that are put together lie in the host's memory, so a GPU needs room of its own for them.
    if (plan.program().device == tensor::Device::Cuda && replicas.is_put_together()) {
      return std::make_unique<model::BertInference>(plan.program().model, held_out->capacity(),
                                                    plan.evaluation_threads(), plan.program().device);
    }
    return std::make_unique<model::BertInference>(plan.program().model, held_out->capacity(),
                                                  plan.evaluation_threads(), replicas.weights(),
                                                  plan.program().device);
  }
  note(fmt::format("no data is held out, so nothing is evaluated; {}", data.held_out_advice()));
  return nullptr;
}

/// RunCadence::is_drained.
std::vector<bool> drained_steps(const schedule::Schedule& schedule) {
  const schedule::Refreshes refreshes(schedule);
  std::vector<bool> is_drained;
  for (std::size_t step = 0; step < schedule.num_steps(); ++step)
    is_drained.push_back(refreshes.is_drained(step));
  return is_drained;
}

}  // namespace

bool Run::may_save() const {
  return state.step >= plan->num_steps() || schedule::Refreshes(plan->schedule()).is_drained(state.step);
}

std::vector<TunedStream> Run::tuned_streams() const {
  std::vector<TunedStream> streams{{"training", replicas->stream()}};
  if (inference) streams.push_back({"evaluation", inference->stream()});
  return streams;
}

Run open_run(const RunOptions& options, std::unique_ptr<const TrainingData> data, TrainingObserver& observer,
             const Processes& processes) {
  const auto begin = std::chrono::steady_clock::now();
  const Note note = [&observer](std::string_view line) { observer.on_note(line); };
  const Note note_once = of_first(processes, note);
  require_device(options, processes);  // first: without the device nothing is touched
  require_drawable(options);
  const DeviceMemory device_memory(options.run.device.value());

  TrainingState state = first_state(options, *data);
  std::unique_ptr<RunDirectory> directory;
  std::optional<FoundCheckpoint> found;
  if (processes.is_first() || options.data.sharding == data::DataSharding::Local)
    data->require_unchanged(note);
  if (processes.is_first()) {
    directory = std::make_unique<RunDirectory>(options, *data);
    found = find_checkpoint(options, *directory, *data, state, observer);
  }
  found = shared_checkpoint(std::move(found), processes);

  std::unique_ptr<RunPlan> plan = plan_run(options, *data, found, device_memory, processes, note_once);
  std::unique_ptr<data::SequenceExchange> exchange = open_exchange(options, *data, *plan, processes);
  fill_bubbles(*plan, {.options = options,
                       .processes = processes,
                       .observer = observer,
                       .exchange = exchange.get(),
                       .available_bytes = device_memory.available_bytes(),
                       .is_resumed = found.has_value()});
  // What it measures with is given back before the run takes its memory.
  std::unique_ptr<StepPrediction> prediction = predict(options, *plan, processes, note);
  auto replicas = std::make_unique<Replicas>(plan->mesh(), plan->schedule(), plan->program(), processes,
                                             options.hang_limit(), options.run.process.emulate_link);
  state =
      found ? resume(*found, *replicas) : begin_anew(options, *plan, *replicas, std::move(state), note_once);
  state.attention_cost = plan->batches().attention_cost();
  if (directory) state.options = directory->kept_options();
  std::unique_ptr<model::BertInference> inference = open_inference(*plan, *replicas, *data, note_once);

  Run run{.begin = begin,
          .options = options,
          .device_memory = device_memory,
          .processes = processes,
          .between_steps = processes.communicator(),
          .data = std::move(data),
          .directory = std::move(directory),
          .plan = std::move(plan),
          .prediction = std::move(prediction),
          .exchange = std::move(exchange),
          .replicas = std::move(replicas),
          .inference = std::move(inference),
          .tuning = TuningFile(RunPaths(options.run.directory).tuning),
          .state = std::move(state),
          .checkpoint = found ? found->directory : ""};
  // A run that begins anew measures anew: what lies there may be of another configuration.
  if (found) run.tuning.restore(run.tuned_streams(), note);
  if (run.directory) run.directory->make();
  keep_schedule(run);
  return run;
}

std::uint64_t drawn_step(const Run& run) {
  const ProcessSettings& process = run.options.run.process;
  const std::uint64_t cycle = run.plan->schedule().num_steps();
  const auto asked = static_cast<std::uint64_t>(process.drawn_step());
  if (process.trace_step || cycle == 1) return run.state.step + asked;
  // In the first cycle there are no inverses yet, and from the second durations are taken.
  const std::uint64_t earliest = run.state.step + std::max(asked, 2 * cycle + 1);
  return (earliest + cycle - 2) / cycle * cycle + 1;
}

bool is_overlaid(const Run& run) {
  if (!run.options.run.process.overlay.empty()) return true;
  return run.prediction && run.plan->schedule().num_steps() > 1;
}

RunCadence cadence_of(const Run& run) {
  const ProcessSettings& process = run.options.run.process;
  RunCadence cadence{.num_steps = run.plan->num_steps(),
                     .evaluate_every = run.plan->evaluate_every().steps,
                     .checkpoint_every = run.plan->checkpoint_every().steps,
                     .traced_step = std::nullopt,
                     .checkpoint_seconds = run.plan->checkpoint_every().seconds,
                     .evaluation_seconds = run.plan->evaluate_every().seconds,
                     .lag = is_on_gpu(run) ? kGpuLag : 0,
                     .is_drained = drained_steps(run.plan->schedule())};
  const std::uint64_t drawn = drawn_step(run);
  if (!process.trace.empty()) cadence.traced_step = drawn;
  if (is_overlaid(run)) {
    cadence.first_measured_step =
        std::max(drawn - std::min(drawn, StepOverlay::num_calibrating(run.plan->schedule())),
                 run.state.step + StepOverlay::kFirstUsable);
    cadence.end_measured_step = drawn + StepOverlay::kNumCompared;
  } else if (run.prediction) {
    cadence.first_measured_step = run.state.step + StepCheck::kNumBefore + 1;
    cadence.end_measured_step = cadence.first_measured_step + StepCheck::kNumCompared;
  }
  if (!process.stop_after.empty())
    cadence.time_limit_seconds = base::parse_seconds(process.stop_after, "stop-after");
  return cadence;
}

namespace {

/// "every 100 steps or 10min and at the end".
std::string interval_text(const Interval& every) {
  std::string text;
  if (every.steps > 0) {
    text = every.steps == 1 ? "every step" : fmt::format("every {} steps", base::format_count(every.steps));
  }
  if (every.seconds < RunCadence::kNever) {
    text += text.empty() ? "every " : " or ";
    text += optim::to_string({every.seconds, optim::DurationUnit::Seconds});
  }
  return text.empty() ? "at the end" : text + " and at the end";
}

/// The value of an option as its flag is given.
std::string option_text(RunOptions options, std::string_view name) {
  for (const base::OptionTable& table : options.tables()) {
    if (const base::Option* option = table.find(name)) return option->get().front();
  }
  return {};
}

double product_rate(const Run& run) {
  if (run.prediction) return run.prediction->product_rate();
  return run.options.run.process.quiet ? 0 : measure_product_rate(*run.plan, run.device_memory);
}

}  // namespace

RunSummary summarise(const Run& run) {
  const RunPlan& plan = *run.plan;
  return {.first_step = run.state.step,
          .num_steps = plan.num_steps(),
          .steps_per_epoch = plan.batches().steps_per_epoch(),
          .model_name = model_name(run.options.model),
          .model = plan.program().model,
          .num_parameters = run.replicas->parameters().num_parameters(),
          .num_ranks = plan.mesh().num_ranks(),
          .ranks_per_model = plan.mesh().ranks_per_replica(),
          .pipeline = schedule_text(plan.schedule()),
          .threads_per_rank = plan.program().num_threads,
          .micro_batches_per_rank = plan.batches().micro_batches_per_rank(),
          .expected_tokens_per_step = plan.batches().expected_tokens_per_step(),
          .learning_rate = run.options.optimizer.learning_rate.peak.value(),
          .warmup_steps = plan.learning_rate().num_warmup_steps(),
          .learning_rate_schedule = option_text(run.options, "lr-schedule"),
          .checkpoints = RunPaths(run.options.run.directory).checkpoints,
          .checkpoint_times = interval_text(plan.checkpoint_every()),
          .evaluation_times = plan.held_out() ? interval_text(plan.evaluate_every()) : "",
          .gpu = is_on_gpu(run) ? tensor::cuda_device_info().name : "",
          .predicted_step_seconds = run.prediction ? run.prediction->mean_seconds() : 0,
          .product_rate = product_rate(run),
          .memory = plan.memory(),
          .device_memory = run.device_memory};
}

}  // namespace plenum::train
