#include "plenum/train/run_options.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/plan/link_text.h"
#include "plenum/schedule/generate/generator.h"

namespace plenum::train {

void add_device_option(base::OptionTable& options, DeviceChoice& device) {
  base::Option& option = options.add_choice<DeviceChoice>(
      "device", device,
      {{"auto", std::nullopt}, {"cpu", tensor::Device::Cpu}, {"cuda", tensor::Device::Cuda}},
      "What computes: the CPU (float32), an NVIDIA GPU (bfloat16), or the GPU if there is one");
  option.set = [set = option.set](const std::vector<std::string>& given) {
    constexpr std::string_view kNumbered = "cuda:";
    if (given.front().starts_with(kNumbered)) {
      base::fail(
          "device must be auto, cpu or cuda: '{}'; CUDA_VISIBLE_DEVICES={} with --device cuda chooses a GPU",
          given.front(), given.front().substr(kNumbered.size()));
    }
    set(given);
  };
}

void add_fill_option(base::OptionTable& options, std::optional<BubbleFill>& fill) {
  base::Option& option = options.add_choice<std::optional<BubbleFill>>(
      "fill", fill,
      {{"auto", std::nullopt},
       {"off", BubbleFill::Off},
       {"deferred", BubbleFill::Deferred},
       {"fresh", BubbleFill::Fresh}},
      "With --pp: when K-FAC computes curvature and inverses, and SOAP its eigenbases: in bubbles, of whole "
      "steps and spread over several (deferred), or of the micro-batches that find room in their own step "
      "(fresh, kfac), or outside them, every --kfac-every or --soap-every steps (off); auto is deferred, or "
      "off if one of these is given");
  option.former_name = "kfac-fill";
}

using base::OptionTable;

namespace {

void add_duration(OptionTable& options, std::string name, optim::Duration& value, std::string help) {
  options.add_parsed(std::move(name), value, "DURATION", std::move(help), optim::parse_duration,
                     [](const optim::Duration& duration) { return optim::to_string(duration); });
}

/// Of something that is done between steps; absent values too.
template <typename Value>
void add_interval(OptionTable& options, std::string name, Value& value, std::string help) {
  options.add_parsed(std::move(name), value, "DURATION", std::move(help), optim::parse_interval,
                     [](const optim::Duration& duration) { return optim::to_string(duration); });
}

/// "3,3,4,2"; nothing for none.
std::vector<std::int64_t> parse_stage_layers(const std::string& text, const std::string& what) {
  if (text.empty()) return {};
  std::vector<std::int64_t> layers;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    layers.push_back(base::parse_integer(rest.substr(0, comma), what));
    base::require(layers.back() >= 1 && layers.back() <= 4096,
                  "{} must be layers of every stage, such as 3,3,3,3: '{}'", what, text);
    if (comma == std::string_view::npos) return layers;
    rest.remove_prefix(comma + 1);
  }
}

bool is_schedule_file(std::string_view schedule) {
  return schedule.ends_with(".txt") || schedule.ends_with(".json");
}

void add_pipeline(OptionTable& options, RunSettings& run) {
  options.add("pp", run.pp, 1, 1024,
              "Pipeline parallelism: so many ranks hold a model together, each some of its layers");
  std::vector<std::pair<std::string, std::string>> schedules = {{"auto", ""}};
  for (const schedule::Generator& generator : schedule::all_generators()) {
    if (generator.is_pipeline()) schedules.emplace_back(generator.name, generator.name);
  }
  base::Option& schedule = options.add_choice(
      "schedule", run.schedule, std::move(schedules),
      "With --pp: in which order ranks work on micro-batches (plenum simulate); auto is 1f1b. Or a file that "
      "plenum simulate --output wrote (.txt, .json)");
  schedule.set = [&run, set = schedule.set](const std::vector<std::string>& given) {
    if (is_schedule_file(given.front())) {
      run.schedule = given.front();
    } else {
      set(given);
    }
  };
  schedule.get = [&run, get = schedule.get] {
    return is_schedule_file(run.schedule) ? std::vector{run.schedule} : get();
  };
  options.add_parsed("stage-layers", run.stage_layers, "N,N,...",
                     "With --pp: layers of every stage; such that all do as many operations if not given",
                     parse_stage_layers, [](const std::vector<std::int64_t>& layers) {
                       return fmt::format("{}", fmt::join(layers, ","));
                     });
  options.add("chunks", run.chunks, 2, 64, "With --schedule interleaved: stages on every rank");
  add_fill_option(options, run.fill);
}

/// What steps are measured for, and compared with.
void add_predictions(OptionTable& options, ProcessSettings& process) {
  options.add("trace", process.trace, "FILE",
              "Draw the measured actions of a step: .svg, or .json for Perfetto");
  options.add(
      "overlay", process.overlay, "FILE",
      "Draw a step as it was measured below what earlier steps predict: .svg, or .json with every action");
  options.add(
      "trace-step", process.trace_step, 1, std::numeric_limits<std::int64_t>::max(),
      "Which step to draw, counted from the start of this process; 3, or 8 with --overlay, if not given");
  options.add(
      "machine", process.machine, "FILE",
      "Predict the time of a step by this file, which plenum calibrate wrote; if not given, a second is "
      "spent on measuring");
  options.add_parsed(
      "emulate-link", process.emulate_link, "LINK",
      "For debugging and studies: let ranks of one process communicate as over a network, such as "
      "latency=100us,bandwidth=1GB/s",
      plan::parse_link, plan::link_text);
}

}  // namespace

OptionTable RunSettings::table() {
  OptionTable options("run");
  options.add("run", directory, "DIR", "Output directory; a run that is there resumes with its own options");
  add_duration(options, "steps", steps, "How long to train: 20000 steps, 2e9tok, 5e6sp or 3ep");
  options.add("seed", seed, 0, std::numeric_limits<std::int64_t>::max(),
              "Seed of initialisation, order, masking and dropout");
  add_device_option(options, device);
  options.add("ranks", ranks, 1, 1024,
              "Ranks as threads of one process, on the CPU; data-parallel but for --tp and --pp");
  options.add("share-gpu", share_gpu,
              "Let the --ranks of one process share the GPU, a part of its multiprocessors each: to try out "
              "schedules, not to be faster");
  options.add("gpus", process.gpus, 0, 1024, "Train on this many GPUs of this machine: a process for each");
  options.add("restart", process.restarts, 0, 1'000'000,
              "With --gpus: after a failure, resume from the last checkpoint, this many times");
  options.add("interface", process.interface, "NAME",
              "Network interface or address over which processes find each other, such as eth0");
  options.add("tp", tp, 1, 1024,
              "Tensor parallelism: so many ranks hold every layer together; it divides heads and --ranks");
  add_pipeline(options, *this);
  options.add_choice(
      "shard", shard,
      {{"none", schedule::Sharding::None},
       {"optimizer", schedule::Sharding::Optimizer},
       {"gradients", schedule::Sharding::Gradients},
       {"parameters", schedule::Sharding::Parameters}},
      "What ranks divide to save memory: the optimizer's state (ZeRO-1), gradients too (ZeRO-2), or "
      "parameters too (ZeRO-3)");
  options.add("bucket-bytes", bucket_bytes, 1, std::numeric_limits<std::int64_t>::max(),
              "Gradients that ranks sum at a time, in whole layers; 25 MB if not given");
  options.add("threads", threads, 1, 4096, "Threads over all ranks; all cores if not given");
  options.add_choice("recompute", recompute,
                     {{"none", schedule::Recomputation::None},
                      {"mlp", schedule::Recomputation::Mlp},
                      {"full", schedule::Recomputation::Full}},
                     "Save memory by computing activations again; the same results");
  options.add_choice("reduction", reduction, {{"direct", Reduction::Direct}, {"library", Reduction::Library}},
                     "How MPI sums gradients: direct gives the same result as --ranks on one machine, "
                     "library is MPI's own");
  options.add_choice("reduce-dtype", reduce_dtype,
                     {{"fp32", tensor::DType::Float32}, {"bf16", tensor::DType::BFloat16}},
                     "In which gradients travel between ranks: bf16 in half the bytes, each rounded");
  options.add("stop-after", process.stop_after, "TIME",
              "Write a checkpoint and stop after this long: 90s, 30min, 47h or 2d");
  options.add("max-skipped-steps", max_skipped_steps, 1, 1'000'000,
              "Stop after so many steps in a row with a loss or gradient that is not finite");
  add_predictions(options, process);
  options.add("hang-limit", process.hang_limit, "TIME",
              "Stop a run that hangs: the longest that a part of a step may take");
  options.add("json", process.json, "Print the result as JSON");
  options.add("quiet", process.quiet, "Show no progress");
  return options;
}

OptionTable ModelSettings::table() {
  OptionTable options("model");
  constexpr std::int64_t kMost = 1 << 20;
  options.add("model", preset, "NAME",
              "What to train: bert-tiny, bert-mini, bert-small, bert-base or bert-large");
  options.add("init", init, "DIR",
              "Start from this BERT instead: a Hugging Face directory, a run of plenum train, whose best "
              "checkpoint is taken, or a checkpoint");
  options.add("layers", layers, 1, 4096, "Encoder layers instead of the preset's");
  options.add("width", width, 1, kMost, "Width instead of the preset's");
  options.add("heads", heads, 1, kMost, "Attention heads instead of the preset's");
  options.add("mlp-width", mlp_width, 1, kMost, "Width inside the MLPs; four times a given --width");
  options.add("max-positions", max_positions, 5, kMost,
              "Longest sequence the model can take instead of the preset's");
  options.add("hidden-dropout", hidden_dropout, 0, 0.999, "Dropout between layers instead of the model's");
  options.add("attention-dropout", attention_dropout, 0, 0.999,
              "Dropout of attention probabilities instead of the model's");
  return options;
}

OptionTable CheckpointSettings::table() {
  OptionTable options("checkpoint");
  add_interval(options, "checkpoint-every", every,
               "How often to write a checkpoint: 10min, 500 steps, 1ep; one at the end, too");
  options.add("keep", keep, 1, 1'000'000, "How many of the newest checkpoints to keep, beside the best");
  options.add_choice("on-full-disk", on_full_disk,
                     {{"stop", OnFullDisk::Stop}, {"continue", OnFullDisk::Continue}},
                     "What to do when the disk is full; earlier checkpoints stay");
  return options;
}

OptionTable EvaluationSettings::table() {
  OptionTable options("evaluation");
  add_interval(options, "eval-every", every,
               "How often to evaluate on held-out data: 10min, 500 steps, 1ep; ten times a run if not given");
  options.add("eval-sequences", sequences, 0, std::numeric_limits<std::int64_t>::max(),
              "Held-out sequences to evaluate on; 0 for all");
  options.add("stop-when-worse", stop_when_worse, 0, 1'000'000,
              "End the run after this many evaluations in a row without a new best; 0 for never");
  return options;
}

namespace {

plan::UpdateRule update_rule(optim::OptimizerKind kind) {
  return kind == optim::OptimizerKind::Lamb ? plan::UpdateRule::Lamb : plan::UpdateRule::AdamW;
}

bool fills_bubbles(optim::OptimizerKind kind) {
  return kind == optim::OptimizerKind::Kfac || kind == optim::OptimizerKind::Soap;
}

schedule::Preconditioner preconditioner(optim::OptimizerKind kind) {
  if (kind == optim::OptimizerKind::Kfac) return schedule::Preconditioner::Kfac;
  if (kind == optim::OptimizerKind::Muon) return schedule::Preconditioner::Muon;
  return kind == optim::OptimizerKind::Soap ? schedule::Preconditioner::Shampoo
                                            : schedule::Preconditioner::None;
}

}  // namespace

std::vector<OptionTable> RunOptions::tables() {
  std::vector<OptionTable> tables = all_tables();
  if (!task.kind) tables.erase(tables.end() - 2, tables.end());
  return tables;
}

std::vector<OptionTable> RunOptions::all_tables() {
  std::vector<OptionTable> tables;
  tables.push_back(run.table());
  tables.push_back(model.table());
  tables.push_back(data.table());
  tables.push_back(optimizer.table());
  tables.push_back(checkpoint.table());
  tables.push_back(evaluation.table());
  tables.push_back(task.table());
  tables.push_back(task.data.table());
  return tables;
}

void RunOptions::check_model() const {
  if (task.kind) {
    base::require(!model.init.empty(),
                  "give --model DIR, a Hugging Face directory or a run of plenum train; {} holds no run that "
                  "has one",
                  run.directory);
    return;
  }
  base::require(
      !model.preset.empty() || !model.init.empty(),
      "give either --model NAME, such as bert-mini, or --init DIR, a Hugging Face directory or a run; {} "
      "holds no run that has one",
      run.directory);
  base::require(model.preset.empty() || model.init.empty(),
                "give --model or --init, not both, and neither to a run that has one: --model {} --init {}",
                model.preset, model.init);
  base::require(model.init.empty() ||
                    !(model.layers || model.width || model.heads || model.mlp_width || model.max_positions),
                "sizes do not go with --init, whose directory states them");
}

void RunOptions::check() const {
  base::require(!run.directory.empty(), "no place for the run is given; add --run DIR");
  check_model();
  base::require(!run.threads || *run.threads >= run.ranks,
                "every rank needs a thread: {} ranks, {} threads; give more --threads or fewer --ranks",
                run.ranks, run.threads.value_or(0));
  static_cast<void>(mesh());
  check_fill();
  check_pipeline();
  base::require(run.process.trace.empty() || run.process.trace.ends_with(".svg") ||
                    run.process.trace.ends_with(".json"),
                "--trace must end with .svg or .json: {}", run.process.trace);
  base::require(run.process.overlay.empty() || run.process.overlay.ends_with(".svg") ||
                    run.process.overlay.ends_with(".json"),
                "--overlay must end with .svg or .json: {}", run.process.overlay);
  base::require(run.process.overlay.empty() || run.process.drawn_step() >= kTraceStep,
                "--overlay needs --trace-step of at least {}: the first step is like no other, and a step is "
                "predicted from those before",
                kTraceStep);
  if (!run.process.stop_after.empty()) base::parse_seconds(run.process.stop_after, "stop-after");
  hang_limit();
  if (task.kind) {
    task.check();
    data::TrainingDataOptions of_task = data;
    of_task.directory = task.train;
    of_task.check();
  } else {
    data.check();
  }
  optimizer.check();
}

bool RunOptions::has_schedule_file() const {
  return is_schedule_file(run.schedule);
}

namespace {

/// Of a pipeline whose schedule is made.
BubbleFill fill_of_pipeline(const optim::OptimizerOptions& chosen, std::optional<BubbleFill> asked,
                            bool is_gpu) {
  if (chosen.kind == optim::OptimizerKind::Kfac)
    return asked.value_or(chosen.kfac.every ? BubbleFill::Off : BubbleFill::Deferred);
  if (chosen.kind != optim::OptimizerKind::Soap) return BubbleFill::Off;
  return asked.value_or(chosen.soap.every || is_gpu ? BubbleFill::Off : BubbleFill::Deferred);
}

}  // namespace

BubbleFill RunOptions::fill() const {
  if (run.pp == 1 || has_schedule_file()) return BubbleFill::Off;
  return matrix_work().fill;
}

plan::MatrixWork RunOptions::matrix_work() const {
  const optim::OptimizerOptions& chosen = optimizer.optimizer;
  const bool is_kfac = chosen.kind == optim::OptimizerKind::Kfac;
  const std::int64_t every = is_kfac ? chosen.kfac.every.value_or(1) : chosen.soap.refresh_steps();
  return {.kind = preconditioner(chosen.kind),
          .every = static_cast<std::size_t>(every),
          .fill = fill_of_pipeline(chosen, run.fill, run.device == tensor::Device::Cuda),
          .soap_limit = chosen.soap.limit,
          .kfac_averages = chosen.kfac.average ? memory::RunningAverages::Yes : memory::RunningAverages::No};
}

void RunOptions::check_fill() const {
  const optim::OptimizerOptions& chosen = optimizer.optimizer;
  base::require(!has_schedule_file() || !(run.fill || chosen.kfac.every || !run.stage_layers.empty()),
                "{} says itself what layers stages have and when K-FAC or SOAP refreshes; leave out "
                "--stage-layers, --fill and --kfac-every",
                run.schedule);
  if (run.fill.value_or(BubbleFill::Off) == BubbleFill::Off) return;
  base::require(run.pp > 1 || !fills_bubbles(chosen.kind),
                "--fill fills the bubbles of a pipeline; add --pp, or leave it out");
  check_fill_choice();
}

void RunOptions::check_fill_choice() const {
  if (run.fill.value_or(BubbleFill::Off) == BubbleFill::Off) return;
  const optim::OptimizerOptions& chosen = optimizer.optimizer;
  const bool is_soap = chosen.kind == optim::OptimizerKind::Soap;
  base::require(fills_bubbles(chosen.kind),
                "--fill is for --optimizer kfac and soap; leave it out, or choose one of them");
  base::require(
      !(is_soap ? chosen.soap.every : chosen.kfac.every),
      "--{}-every does not go with --fill: how often {} are renewed follows from the bubbles; leave "
      "out one of both",
      is_soap ? "soap" : "kfac", is_soap ? "bases" : "factors");
  if (!is_soap) return;
  base::require(run.fill != BubbleFill::Fresh,
                "--fill fresh is for --optimizer kfac, whose statistics are of micro-batches; SOAP's are of "
                "the gradient of a whole step: give --fill deferred");
  base::require(run.device != tensor::Device::Cuda,
                "SOAP's bases are refreshed in bubbles on the CPU alone so far; leave out --fill, or train "
                "with --device cpu");
}

void RunOptions::check_pipeline() const {
  if (const std::optional<std::string> reason = plan::reason_against(strategy())) base::fail("{}", *reason);
}

plan::Strategy RunOptions::strategy() const {
  const Mesh of_run = mesh();
  plan::Strategy strategy{.replicas = of_run.num_replicas(),
                          .slices = of_run.num_slices(),
                          .depth = of_run.depth(),
                          .chunks = static_cast<std::size_t>(run.chunks),
                          .stage_layers = run.stage_layers,
                          .micro_batches = {.tokens = data.micro_batch_tokens, .count = data.micro_batches},
                          .sharding = run.shard,
                          .recomputation = run.recompute,
                          .bucket_bytes = run.bucket_bytes.value_or(plan::kBucketBytes),
                          .update = update_rule(optimizer.optimizer.update_kind()),
                          .matrices = matrix_work(),
                          .reduce_dtype = run.reduce_dtype,
                          .device = run.device.value_or(tensor::Device::Cpu)};
  if (!run.schedule.empty() && !has_schedule_file()) strategy.pipeline = run.schedule;
  return strategy;
}

std::chrono::milliseconds RunOptions::hang_limit() const {
  const std::chrono::duration<double> limit(base::parse_seconds(run.process.hang_limit, "hang-limit"));
  constexpr std::chrono::hours kLongest{24 * 365};  // clocks count nanoseconds
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::min<std::chrono::duration<double>>(limit, kLongest));
}

Mesh RunOptions::mesh() const {
  return Mesh(static_cast<std::size_t>(run.ranks), static_cast<std::size_t>(run.tp),
              static_cast<std::size_t>(run.pp));
}

std::size_t RunOptions::threads_per_rank() const {
  const std::int64_t threads = run.threads.value_or(base::usable_cores());
  return static_cast<std::size_t>(std::max<std::int64_t>(1, threads / run.ranks));
}

}  // namespace plenum::train
