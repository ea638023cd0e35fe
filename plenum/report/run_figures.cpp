#include "plenum/report/run_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace plenum::report {
namespace {

constexpr std::size_t kNumRecent = 100;

std::span<const double> recent(const std::vector<double>& column) {
  return std::span(column).last(std::min(kNumRecent, column.size()));
}

double finite_sum(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::isfinite(value) ? value : 0;
  return sum;
}

std::optional<double> finite_mean(std::span<const double> values) {
  const auto count = std::ranges::count_if(values, [](double value) { return std::isfinite(value); });
  return count > 0 ? std::optional(finite_sum(values) / static_cast<double>(count)) : std::nullopt;
}

std::optional<double> ratio(double part, double whole) {
  return whole > 0 && part > 0 ? std::optional(part / whole) : std::nullopt;
}

/// The score by which a run chooses its best checkpoint; empty where the loss decides.
std::string deciding_score(const RunRecord& run) {
  const auto metric = std::ranges::find(run.options, "metric in [task]", &ConfigOption::name);
  return metric == run.options.end() || metric->value == "loss" ? "" : metric->value;
}

/// As training has it: by the score, of equal ones by the loss. An evaluation without the score is the worst.
bool is_better(const EvaluationRecord& a, const EvaluationRecord& b, const std::string& score) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const double difference =
      score.empty() ? 0 : a.value(score).value_or(kNone) - b.value(score).value_or(kNone);
  return difference > 0 || (!(difference < 0) && a.value("loss").value() < b.value("loss").value());
}

void add_evaluations(const RunRecord& run, RunFigures& figures) {
  const std::string deciding = deciding_score(run);
  const EvaluationRecord* best = nullptr;
  for (const EvaluationRecord& evaluation : run.evaluations) {
    figures.evaluation_seconds += evaluation.seconds;
    if (!evaluation.value("loss")) continue;
    figures.held_out_loss = evaluation.value("loss");
    if (best == nullptr || is_better(evaluation, *best, deciding)) best = &evaluation;
  }
  if (best == nullptr) return;
  figures.best_loss = best->value("loss");
  figures.best_step = best->step;
  const auto score = std::ranges::find_if(best->values, [&](const auto& value) {
    return deciding.empty() ? is_score(value.first) : value.first == deciding;
  });
  if (score == best->values.end()) return;
  figures.accuracy = score->second;
  figures.accuracy_name = spoken(score->first);
  figures.is_best_by_score = !deciding.empty();
}

void add_padding(const RunRecord& run, RunFigures& figures) {
  const double padded = finite_sum(run.steps.padded_tokens);
  const double sequences = finite_sum(run.steps.sequences);
  if (figures.tokens <= 0) return;
  figures.padding = padded / (figures.tokens + padded);
  const std::optional<double> max_length = run.number("/lengths/max_length");
  if (!max_length || sequences <= 0) return;
  figures.padding_avoided = 1 - (figures.tokens + padded) / (sequences * *max_length);
}

void add_events(const RunRecord& run, RunFigures& figures) {
  for (const RunEvent& event : run.events) {
    if (event.kind == "resume") ++figures.num_resumed;
    if (const std::optional<double> used = number_in(event.details, "/used_bytes"))
      figures.used_bytes = std::max(figures.used_bytes.value_or(0), *used);
  }
}

}  // namespace

bool is_loss(const std::string& name) {
  return name == "loss" || name.ends_with("_loss");
}

bool is_score(const std::string& name) {
  constexpr std::array<std::string_view, 9> kEnds = {
      "accuracy", "f1", "f1_macro", "matthews", "pearson", "spearman", "exact_match", "precision", "recall"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

std::string spoken(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::vector<double> product_flops_of_steps(const RunRecord& run) {
  std::vector<double> flops(run.steps.size(), std::numeric_limits<double>::quiet_NaN());
  for (const RunEvent& event : run.events) {
    if (!event.begins_process()) continue;
    const double rate = number_in(event.details, "/product_flops").value_or(0);
    const auto first = std::ranges::upper_bound(run.steps.step, event.step) - run.steps.step.begin();
    std::fill(flops.begin() + first, flops.end(), rate > 0 ? rate : std::numeric_limits<double>::quiet_NaN());
  }
  return flops;
}

RunFigures figures_of(const RunRecord& run) {
  const StepColumns& steps = run.steps;
  RunFigures figures;
  figures.num_parameters = run.number("/model/parameters").value_or(0);
  add_evaluations(run, figures);
  add_events(run, figures);
  if (steps.size() == 0) return figures;
  figures.num_steps = steps.step.back();
  figures.tokens = finite_sum(steps.real_tokens);
  figures.step_seconds = finite_sum(steps.seconds);
  figures.wall_seconds =
      std::isfinite(steps.wall_seconds.back()) ? steps.wall_seconds.back() : figures.step_seconds;
  figures.num_skipped = steps.skipped.size();
  figures.loss = finite_mean(std::span(steps.loss).last(std::min<std::size_t>(20, steps.size())));
  const double recent_seconds = finite_sum(recent(steps.seconds));
  figures.tokens_per_second = ratio(finite_sum(recent(steps.real_tokens)), recent_seconds);
  figures.mean_tokens_per_second = ratio(figures.tokens, figures.step_seconds);
  const std::vector<double> product_flops = product_flops_of_steps(run);
  if (std::isfinite(product_flops.back()))
    figures.peak_share = ratio(finite_sum(recent(steps.flops)), recent_seconds * product_flops.back());
  add_padding(run, figures);
  return figures;
}

std::string state_of(const RunRecord& run) {
  if (run.is_locked) return "training";
  if (run.is_finished()) return "finished";
  const auto last = std::find_if(run.events.rbegin(), run.events.rend(), [](const RunEvent& event) {
    return event.ends_process() || event.begins_process();
  });
  if (last == run.events.rend()) return "not training";
  if (last->kind == "error") return "ended by an error";
  return last->kind == "stop" ? "stopped" : "killed";
}

}  // namespace plenum::report
