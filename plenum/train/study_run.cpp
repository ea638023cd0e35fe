#include "plenum/train/study_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/calibrate/machine_file.h"
#include "plenum/control/child_process.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/io/json_file.h"
#include "plenum/plan/step_breakdown.h"
#include "plenum/schedule/core/action.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/step_prediction.h"

namespace plenum::train {
namespace {

/// Of the process, whose actions are looked at: train's --overlay draws it.
constexpr std::uint64_t kDrawnStep = static_cast<std::uint64_t>(kOverlayStep);
constexpr std::uint64_t kFewestSteps = 16;
constexpr std::uint64_t kMostSteps = 3000;

/// The plan of a configuration with all that it borrows.
struct PlannedRun {
  PlannedRun(const StudySetting& setting, const RunOptions& given)
      : data(setting.data),
        options(settle_defaults(
            given, data, given.run.ranks, [](std::string_view) {}, [](std::string_view) {})),
        plan(options, data, starting_model(options.model, data), rank_of(setting, options),
             options.data.attention_cost.value_or(1)) {}

  static std::optional<base::Rank> rank_of(const StudySetting& setting, const RunOptions& options) {
    const bool is_of_process = setting.engine == StudyEngine::Mpi && options.run.ranks > 1;
    return is_of_process ? std::optional(base::Rank::at(0)) : std::nullopt;
  }

  PreparedData data;
  RunOptions options;
  RunPlan plan;
};

plan::Cluster cluster_for(const StudySetting& setting, const PlannedRun& run) {
  constexpr double kSeconds = 1;
  plan::Cluster cluster;
  if (setting.machine.empty()) {
    cluster = measure_cluster(run.plan, Processes(), kSeconds);
    cluster.overhead_bytes = static_cast<double>(setting.program_bytes);
  } else {
    cluster = calibrate::read_cluster(
        setting.machine, {.ranks = run.plan.mesh().num_ranks(), .threads = run.plan.program().num_threads});
  }
  if (const std::optional<plan::Link>& link = run.options.run.process.emulate_link) slow_down(cluster, *link);
  return cluster;
}

bool is_backward(schedule::ActionType type) {
  return type == schedule::ActionType::Backward || type == schedule::ActionType::InputGradient ||
         type == schedule::ActionType::WeightGradient;
}

std::vector<LaneAction> actions_of(const schedule::Schedule& schedule,
                                   const schedule::Simulation& simulation) {
  std::vector<LaneAction> actions;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
      const schedule::LaneProgram& program = schedule.ranks[rank].lanes[lane];
      for (std::size_t i = program.step_begin(0); i < program.step_end(0); ++i) {
        const schedule::ActionTime& time = simulation.replay.times[rank][lane][i];
        actions.push_back({.rank = rank,
                           .is_computed = lane == static_cast<std::size_t>(schedule::Lane::Compute),
                           .is_backward = is_backward(program.actions()[i].type),
                           .start = time.start,
                           .end = time.end});
      }
    }
  }
  return actions;
}

/// What --overlay wrote of a step, as it was measured.
std::vector<LaneAction> read_actions(const std::string& path) {
  const nlohmann::json overlay = io::read_json_file(path);
  std::vector<LaneAction> actions;
  for (const nlohmann::json& action : overlay.at("actions")) {
    const auto category = action.at("category").get<std::string>();
    actions.push_back({.rank = action.at("rank"),
                       .is_computed = action.at("lane") == schedule::lane_name(schedule::Lane::Compute),
                       .is_backward = category == "backward" || category == "input gradient" ||
                                      category == "weight gradient",
                       .start = action.at("measured").at(0),
                       .end = action.at("measured").at(1)});
  }
  return actions;
}

std::vector<std::string> command_of(const StudySetting& setting, const StudyResult& predicted,
                                    const std::string& run) {
  const StudyConfiguration& configuration = predicted.configuration;
  std::vector<std::string> command;
  const std::int64_t ranks = configuration.options.run.ranks;
  if (setting.engine == StudyEngine::Mpi && ranks > 1) {
    command = setting.mpirun;
    command.insert(command.end(), {"-np", fmt::format("{}", ranks)});
  }
  command.insert(command.end(), {setting.program, "train"});
  for (const std::vector<std::string>* const arguments :
       {&configuration.arguments, &configuration.arguments_of_study})
    command.insert(command.end(), arguments->begin(), arguments->end());
  command.insert(command.end(), {"--run", run, "--steps", fmt::format("{}", predicted.prediction.num_steps),
                                 "--json", "--quiet"});
  if (ranks > 1) command.insert(command.end(), {"--overlay", run + "/overlay.json"});
  return command;
}

/// The last line of a text that is not empty.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t end_before = text.rfind('\n');
  return std::string(end_before == std::string_view::npos ? text : text.substr(end_before + 1));
}

void run_to_end(const StudySetting& setting, const std::vector<std::string>& command,
                const std::string& log) {
  using namespace std::chrono_literals;
  sigset_t none;
  sigemptyset(&none);
  control::ChildProcess child(
      {.command = command, .environment = setting.environment, .log = log, .signal_mask = none});
  while (!child.look()) std::this_thread::sleep_for(20ms);
  base::require(child.end()->is_good(), "plenum train ended with {}: {}", control::end_text(*child.end()),
                last_line(io::read_file(log)));
}

StudyMeasurement read_run(const std::string& directory, const std::string& log) {
  StudyMeasurement measurement;
  const nlohmann::json summary = nlohmann::json::parse(last_line(io::read_file(log)));
  measurement.planned_bytes = summary.at("memory").at("planned_bytes");
  measurement.used_bytes = summary.at("memory").at("used_bytes");
  const std::string metrics = io::read_file(RunPaths(directory).metrics);
  for (std::size_t begin = 0; begin < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', begin), metrics.size());
    const nlohmann::json step = nlohmann::json::parse(metrics.substr(begin, end - begin));
    measurement.step_seconds.push_back(step.at("seconds"));
    measurement.step_tokens.push_back(step.at("real_tokens"));
    begin = end + 1;
  }
  if (const std::string path = directory + "/overlay.json"; io::path_exists(path)) {
    const std::vector<LaneAction> actions = read_actions(path);
    measurement.exposed_seconds = exposed_communication(actions);
    measurement.skew_seconds = backward_skew(actions);
  }
  return measurement;
}

}  // namespace

void settle_configuration(const StudySetting& setting, StudyConfiguration& configuration) {
  RunOptions& options = configuration.options;
  for (const std::string_view own : {"run", "steps", "data", "json", "quiet", "overlay", "trace"})
    base::require(!configuration.has(own), "--{} is the study's own option; leave it out of the grid", own);
  options.run.directory = "study";
  add_option(configuration, "data", setting.data);
  if (!options.run.device) add_option(configuration, "device", "cpu");
  if (!options.run.threads)
    add_option(
        configuration, "threads",
        fmt::format("{}", options.run.ranks * std::max<std::int64_t>(1, setting.cores / options.run.ranks)));
  // By what one process measures, runs of a configuration could be divided in different ways.
  if (!options.data.attention_cost) add_option(configuration, "attention-cost", "1");
  // Between the steps that are measured nothing else is done.
  for (const char* const interval : {"checkpoint-every", "eval-every"})
    add_option(configuration, interval, "1000000");
  add_option(configuration, "eval-sequences", "1");
  base::require(setting.engine == StudyEngine::Threads || !options.run.process.emulate_link,
                "--emulate-link is for ranks of one process; leave it out, or choose --engine threads");
  options.check();
  static_cast<void>(PlannedRun(setting, options));
}

StudyResult predict_configuration(const StudySetting& setting, const StudyConfiguration& configuration) {
  RunOptions options = configuration.options;
  const auto last_for = [&](std::uint64_t steps) {
    options.run.steps = {static_cast<double>(steps), optim::DurationUnit::Steps};
    return std::make_unique<PlannedRun>(setting, options);
  };
  std::unique_ptr<PlannedRun> run = last_for(std::max(setting.num_steps, kFewestSteps));
  const plan::Cluster cluster = cluster_for(setting, *run);
  StudyResult result{.configuration = configuration, .name = configuration.name()};
  StudyPrediction& prediction = result.prediction;
  prediction.num_steps = setting.num_steps;
  if (setting.num_steps == 0) {
    const double step = StepPrediction(run->plan, cluster).mean_seconds();
    prediction.num_steps =
        std::clamp(static_cast<std::uint64_t>(std::ceil(std::min(setting.seconds / step, 1e9))), kFewestSteps,
                   kMostSteps);
  }
  run = last_for(prediction.num_steps);
  StepPrediction steps(run->plan, cluster);
  for (std::uint64_t step = 0; step < prediction.num_steps; ++step) {
    const schedule::Simulation simulation = steps.simulate(step);
    prediction.step_seconds.push_back(simulation.step_seconds);
    if (step + 1 != std::min(prediction.num_steps, kDrawnStep)) continue;
    prediction.breakdown = plan::step_breakdown(run->plan.schedule(), steps.costs(), simulation);
    prediction.skew_seconds = backward_skew(actions_of(run->plan.schedule(), simulation));
  }
  prediction.planned_bytes = run->plan.memory().planned_bytes;
  prediction.peak_bytes = prediction.planned_bytes + static_cast<std::size_t>(cluster.overhead_bytes);
  const describe::ModelConfig& model = run->plan.program().model;
  result.parameters =
      static_cast<double>(describe::ParameterTable(describe::describe_bert(model)).num_parameters());
  result.width = static_cast<double>(model.width);
  return result;
}

StudyMeasurement measure_configuration(const StudySetting& setting, const StudyResult& predicted) {
  const std::string run = setting.directory + "/run";
  const std::string log = setting.directory + "/run.log";
  std::filesystem::remove_all(run);
  std::filesystem::remove(log);
  run_to_end(setting, command_of(setting, predicted, run), log);
  StudyMeasurement measurement = read_run(run, log);
  std::filesystem::remove_all(run);
  std::filesystem::remove(log);
  return measurement;
}

}  // namespace plenum::train
