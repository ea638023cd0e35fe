#include "plenum/report/run_curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "plenum/report/run_figures.h"
#include "plenum/report/sampling.h"

namespace plenum::report {
namespace {

/// What was trained on up to each step.
std::vector<double> tokens_so_far(const RunRecord& run) {
  std::vector<double> sums;
  sums.reserve(run.steps.size());
  double sum = 0;
  for (const double tokens : run.steps.real_tokens) {
    sum += std::isfinite(tokens) ? tokens : 0;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<std::string> evaluated(const RunRecord& run, bool (*is_meant)(const std::string&)) {
  std::vector<std::string> names;
  for (const EvaluationRecord& evaluation : run.evaluations) {
    for (const auto& [name, value] : evaluation.values)
      if (is_meant(name) && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<double> quotients(const std::vector<double>& parts, const std::vector<double>& wholes) {
  std::vector<double> result(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    result[i] = wholes[i] > 0 ? parts[i] / wholes[i] : std::nan("");
  return result;
}

}  // namespace

Curve step_curve(const RunRecord& run, const std::vector<double>& values, std::string name, std::size_t color,
                 Curve::Style style) {
  return {.name = std::move(name),
          .color = color,
          .style = style,
          .step = run.steps.step,
          .seconds = run.steps.wall_seconds,
          .tokens = tokens_so_far(run),
          .value = values};
}

Curve smooth_curve(const RunRecord& run, const std::vector<double>& values, std::string name,
                   std::size_t color) {
  return step_curve(run, smooth(values, values.size() / 50), std::move(name), color);
}

Curve evaluation_curve(const RunRecord& run, const std::string& value, std::string name, std::size_t color) {
  Curve curve{.name = std::move(name),
              .color = color,
              .style = Curve::Style::Line,
              .step = {},
              .seconds = {},
              .tokens = {},
              .value = {}};
  const std::vector<double> tokens = tokens_so_far(run);
  for (const EvaluationRecord& evaluation : run.evaluations) {
    const std::optional<double> number = evaluation.value(value);
    if (!number) continue;
    const auto done = std::ranges::upper_bound(run.steps.step, evaluation.step) - run.steps.step.begin();
    curve.step.push_back(evaluation.step);
    curve.seconds.push_back(evaluation.wall_seconds);
    curve.tokens.push_back(done > 0 ? tokens[static_cast<std::size_t>(done) - 1] : 0);
    curve.value.push_back(*number);
  }
  return curve;
}

std::vector<std::string> evaluated_losses(const RunRecord& run) {
  return evaluated(run, is_loss);
}

std::vector<std::string> evaluated_scores(const RunRecord& run) {
  return evaluated(run, is_score);
}

std::vector<double> tokens_per_second(const RunRecord& run) {
  return quotients(run.steps.real_tokens, run.steps.seconds);
}

std::vector<double> peak_shares(const RunRecord& run) {
  return quotients(quotients(run.steps.flops, run.steps.seconds), product_flops_of_steps(run));
}

std::vector<ChartMark> marks_of(const RunRecord& run) {
  std::vector<ChartMark> marks;
  for (const RunEvent& event : run.events)
    if (event.kind == "resume") marks.push_back({event.step, fmt::format("resumed at step {}", event.step)});
  for (const std::uint64_t step : run.steps.skipped)
    marks.push_back({static_cast<double>(step), fmt::format("step {} was skipped", step)});
  return marks;
}

}  // namespace plenum::report
