#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/calibrate/machine_file.h"
#include "plenum/cli/command.h"
#include "plenum/cli/plan_options.h"
#include "plenum/cli/plan_report.h"
#include "plenum/cli/terminal.h"
#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/data/batches/histogram_file.h"
#include "plenum/data/batches/histogram_sequences.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/io/file.h"
#include "plenum/plan/planned_schedule.h"
#include "plenum/plan/search.h"
#include "plenum/schedule/simulate/simulate.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/trace/svg_drawing.h"
#include "plenum/train/planned_options.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/run_schedule.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/step_works.h"

namespace plenum::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// What is planned for: model, sequences, and steps made of them.
struct Subject {
  std::optional<train::PreparedData> data;
  std::unique_ptr<data::SequenceSource> sequences;
  describe::ModelConfig model;
  std::optional<train::StepWorks> steps;
  double flops_per_step = 0;
  std::optional<batch::Capacity> evaluated;  ///< of what is held out
};

class PlanCommand final : public Command {
 public:
  std::string name() const override { return "plan"; }
  std::string summary() const override {
    return "Find the fastest layout of a training run that fits a cluster, before it runs";
  }
  std::vector<base::OptionTable> tables() override { return options_.tables(); }
  int run() override;

 private:
  void read_subject(Subject& subject);
  std::optional<batch::Capacity> evaluated(const Subject& subject) const;
  plan::SearchOptions search_options() const;
  plan::MatrixWork matrix_work(const plan::Cluster& cluster) const;
  plan::StrategyRequest request(const Subject& subject, const plan::Cluster& cluster) const;
  WhatIfResult what_if(const plan::WhatIf& change, const PlanReport& report, const Subject& subject,
                       const plan::Cluster& cluster) const;
  std::vector<plan::WhatIf> changes() const;
  void simulate_best(PlanReport& report, const Subject& subject, const plan::Cluster& cluster) const;

  PlanOptions options_;
};

/// A directory's model may stand where a preset's name does.
void PlanCommand::read_subject(Subject& subject) {
  train::ModelSettings& model = options_.run.model;
  if (model.init.empty() && std::filesystem::is_directory(model.preset)) std::swap(model.init, model.preset);
  base::require(!model.preset.empty() || !model.init.empty(),
                "give --model NAME, such as bert-base, or the directory of a model");
  data::TrainingDataOptions& data = options_.run.data;
  base::require(
      data.directory.empty() != options_.histogram.empty(),
      "give either --data DIR or --histogram FILE: how long sequences are decides what a step takes");
  base::require(!data.global_batch.empty(),
                "say what a step trains on: --global-batch 256 (sequences) or 32768tok (tokens)");
  if (!data.directory.empty()) {
    subject.data.emplace(data.directory);
    subject.sequences = std::make_unique<data::DatasetSequences>(subject.data->dataset(), data::Split::Train);
    subject.model = train::starting_model(model, *subject.data);
  } else {
    packing::LengthHistogram histogram =
        data::read_histogram_file(options_.histogram, packing::HistogramText::Form::Histogram);
    const std::int64_t max_length = options_.max_length.value_or(histogram.longest());
    subject.sequences = std::make_unique<data::HistogramSequences>(std::move(histogram), max_length, false,
                                                                   options_.histogram);
    subject.model = train::model_without_data(model);
  }
  subject.evaluated = evaluated(subject);
  constexpr std::uint64_t kSeed = 0;
  subject.steps.emplace(*subject.sequences, data, subject.model, kSeed, data.attention_cost.value_or(1));
  data::TrainingDataOptions unpadded = data;
  unpadded.layout = data::Layout::Unpadded;
  const batch::Work typical = train::typical_work(*subject.sequences, unpadded);
  subject.flops_per_step = describe::Flops(describe::describe_bert(subject.model)).training(typical) *
                           subject.steps->tokens_per_step() / static_cast<double>(typical.tokens);
}

/// Where only lengths are known, data like those are taken to be held out.
std::optional<batch::Capacity> PlanCommand::evaluated(const Subject& subject) const {
  data::EvaluationOptions options{.masking = options_.run.data.masking()};
  if (options_.run.evaluation.sequences > 0) options.max_sequences = options_.run.evaluation.sequences;
  if (!subject.data) return data::most_evaluated(*subject.sequences, options);
  const data::SequenceSource* held_out = subject.data->held_out();
  if (held_out == nullptr) return std::nullopt;
  return data::EvaluationBatches(*held_out, options).capacity();
}

plan::SearchOptions PlanCommand::search_options() const {
  plan::SearchOptions options{.memory_limit_bytes = options_.memory_limit,
                              .num_best = static_cast<std::size_t>(options_.top),
                              .most_simulated = static_cast<std::size_t>(options_.simulate)};
  const data::TrainingDataOptions& data = options_.run.data;
  if (data.micro_batch_tokens) options.grid.micro_batch_tokens = {*data.micro_batch_tokens};
  options.grid.micro_batches = data.micro_batches;
  return options;
}

/// As a run on the cluster's devices would do it.
plan::MatrixWork PlanCommand::matrix_work(const plan::Cluster& cluster) const {
  train::RunOptions of_cluster = options_.run;
  of_cluster.run.device = cluster.kind;
  of_cluster.check_fill_choice();
  base::require(!optim::has_layer_update(of_cluster.optimizer.optimizer.update_kind()) ||
                    of_cluster.optimizer.optimizer.kind != optim::OptimizerKind::Kfac,
                "plans of K-FAC are made with --kfac-base lamb or adamw so far");
  // There it multiplies in fp32, of which machines' files know nothing.
  base::require(of_cluster.optimizer.optimizer.kind != optim::OptimizerKind::Soap ||
                    cluster.kind == tensor::Device::Cpu,
                "plans of SOAP are made for CPUs so far; {} has GPUs", cluster.name);
  return of_cluster.matrix_work();
}

plan::StrategyRequest PlanCommand::request(const Subject& subject, const plan::Cluster& cluster) const {
  return {.model = describe::describe_bert(subject.model),
          .num_ranks = options_.ranks ? static_cast<std::size_t>(*options_.ranks) : cluster.num_devices(),
          .update = options_.run.strategy().update,
          .matrices = matrix_work(cluster),
          .reduce_dtype = options_.reduce_dtype,
          .evaluated = subject.evaluated};
}

/// Those that are asked for, or with --explain twice of everything.
std::vector<plan::WhatIf> PlanCommand::changes() const {
  std::vector<std::string> texts = options_.what_if;
  if (texts.empty() && options_.explain)
    texts = {"link.bandwidth=2x", "link.latency=0.5x", "device.flops=2x", "device.bandwidth=2x", "memory=2x"};
  std::vector<plan::WhatIf> changes;
  for (const std::string& text : texts) changes.push_back(plan::parse_what_if(text, "--what-if"));
  return changes;
}

WhatIfResult PlanCommand::what_if(const plan::WhatIf& change, const PlanReport& report,
                                  const Subject& subject, const plan::Cluster& cluster) const {
  const plan::Cluster other = plan::changed(cluster, change);
  plan::SearchOptions options = search_options();
  options.num_best = 1;
  if (change.what == plan::WhatIf::What::Memory) options.memory_limit_bytes.reset();
  const plan::StrategyRequest wanted = request(subject, cluster);
  plan::SearchResult result = plan::search(wanted, report.model, *subject.steps, other, options);
  WhatIfResult found{.change = change};
  if (result.ranked.empty()) return found;
  const plan::Plan& now = report.result.ranked.front();
  if (static_cast<double>(now.memory.peak_bytes()) <= result.memory_limit_bytes)
    found.same_seconds = plan::plan_of(now.candidate, wanted, *subject.steps, other, options).step.seconds;
  found.best = std::move(result.ranked.front());
  // Of one kind of step only the fastest is looked for: bounds are for those.
  if (found.same_seconds && *found.same_seconds < found.best->step.seconds) found.best = now;
  return found;
}

/// Where its time goes, and its picture.
void PlanCommand::simulate_best(PlanReport& report, const Subject& subject,
                                const plan::Cluster& cluster) const {
  const plan::Plan& best = report.result.ranked.front();
  const plan::SearchOptions options = search_options();
  const describe::ModelDescription model = describe::describe_bert(subject.model);
  const std::vector<plan::StepWork> steps =
      plan::busiest_first(subject.steps->sample(best.strategy().replicas, best.strategy().micro_batches, 1),
                          best.strategy().replicas, model);
  const plan::AbridgedSchedule schedule =
      plan::planned_schedule(best.strategy(), model, subject.steps->typical(), best.candidate.limits,
                             steps.front(), cluster, options.most_replicas)
          .steps;
  const plan::StepCosts costs(schedule.whole, plan::cost_options(best.strategy(), model), steps.front(),
                              cluster);
  std::set<std::string> assumed;
  for (const plan::Op& op : costs.ops()) {
    if (cluster.provenance == plan::Provenance::Measured && !cluster.device.is_known(op.kind))
      assumed.emplace(plan::op_kind_name(op.kind));
  }
  report.assumed.assign(assumed.begin(), assumed.end());
  const schedule::Simulation simulation = schedule::simulate(schedule.written, costs);
  if (options_.explain) {
    report.breakdown = plan::step_breakdown(schedule.written, costs, simulation);
    report.memory = plan::explain_memory(best.candidate, request(subject, cluster), *subject.steps, cluster);
  }
  if (options_.svg.empty()) return;
  trace::Timeline timeline =
      schedule::timeline_of(schedule.written, simulation.replay.times, plan::strategy_text(best.strategy()));
  timeline.step_seconds = simulation.step_seconds;
  io::write_file(options_.svg, trace::draw_svg(timeline));
}

int PlanCommand::run() {
  base::require(!options_.cluster.empty(),
                "say what to plan for: --cluster FILE, of plenum calibrate or from recipes/clusters");
  const std::vector<plan::WhatIf> wanted_changes = changes();
  const auto begin = Clock::now();
  const auto number = [](const std::optional<std::int64_t>& value) {
    return static_cast<std::size_t>(value.value_or(0));
  };
  plan::Cluster cluster =
      calibrate::read_cluster(options_.cluster, {.ranks = 0, .threads = number(options_.threads)});
  if (options_.nodes) cluster.num_nodes = number(options_.nodes);
  base::require(cluster.num_nodes == 1 || cluster.between_nodes.bytes_per_second > 0,
                "{} is one node without a link to others; describe several as recipes/clusters does",
                options_.cluster);
  Subject subject;
  read_subject(subject);
  const plan::StrategyRequest wanted = request(subject, cluster);
  PlanReport report{.model = train::model_name(options_.run.model),
                    .data = options_.histogram.empty() ? options_.run.data.directory : options_.histogram,
                    .cluster = &cluster,
                    .num_ranks = wanted.num_ranks,
                    .tokens_per_step = subject.steps->tokens_per_step(),
                    .flops_per_step = subject.flops_per_step,
                    .price_per_device_hour = options_.price ? options_.price : cluster.price_per_device_hour,
                    .num_shown = static_cast<std::size_t>(options_.top),
                    .result = plan::search(wanted, train::model_name(options_.run.model), *subject.steps,
                                           cluster, search_options())};
  if (report.result.ranked.empty()) base::fail("{}", *report.result.reason);
  simulate_best(report, subject, cluster);
  for (std::size_t i = 0; i < std::min(report.num_shown, report.result.ranked.size()); ++i) {
    if (const auto overhead =
            plan::matrix_overhead(report.result.ranked[i], wanted, *subject.steps, cluster, search_options()))
      report.overheads.push_back(*overhead);
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const plan::WhatIf& change : wanted_changes)
    report.what_ifs.push_back(what_if(change, report, subject, cluster));
  if (!options_.output.empty()) {
    const plan::Plan& best = report.result.ranked.front();
    io::write_file(options_.output,
                   train::print_plan_file(train::planned_options(options_.run, best.strategy(), cluster),
                                          plan_file_comment(report, best)));
  }
  if (options_.json) {
    fmt::print("{}\n", plan_report_json(report));
    return 0;
  }
  fmt::print("{}", plan_report_text(report, terminal_of(stdout).width));
  if (!options_.output.empty())
    fmt::print("\nWritten to {}: plenum train --plan {} --run DIR\n", options_.output, options_.output);
  return 0;
}

}  // namespace

std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace plenum::cli
