#include "plenum/train/study_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/units.h"
#include "plenum/trace/svg_scatter.h"
#include "plenum/train/step_record.h"
#include "plenum/train/study_answers.h"
#include "plenum/train/study_statistics.h"

namespace plenum::train {
namespace {

using nlohmann::ordered_json;

std::vector<const StudyResult*> measured_of(const Study& study) {
  std::vector<const StudyResult*> measured;
  for (const StudyResult& result : study.results)
    if (result.is_measured()) measured.push_back(&result);
  return measured;
}

struct Pairs {
  std::vector<double> predicted;
  std::vector<double> measured;
};

Pairs step_pairs(const Study& study) {
  Pairs pairs;
  for (const StudyResult* const result : measured_of(study)) {
    pairs.predicted.push_back(result->predicted_step());
    pairs.measured.push_back(result->measured_step());
  }
  return pairs;
}

Pairs memory_pairs(const Study& study) {
  Pairs pairs;
  for (const StudyResult* const result : measured_of(study)) {
    pairs.predicted.push_back(static_cast<double>(result->prediction.peak_bytes));
    pairs.measured.push_back(static_cast<double>(result->used_bytes()));
  }
  return pairs;
}

/// Where steps are much alike, most of what differs between them is noise.
bool has_random_steps(const StudyResult& result) {
  return !result.measured_steps().empty() && result.has_steps_of_different_sizes();
}

std::vector<Regret> regrets(const Study& study) {
  std::vector<WorkTime> times;
  for (const StudyResult* const result : measured_of(study))
    times.push_back({.work = result->configuration.work(),
                     .predicted = result->predicted_step(),
                     .measured = result->measured_step()});
  return regrets_of(times);
}

std::string summary_line(std::string_view what, const ErrorSummary& errors) {
  return fmt::format(
      "- {}: mean error {:.1f} %, median {:.1f} %, 95th percentile {:.1f} %, greatest {:.1f} %; {:.0f} % "
      "within 5 %; "
      "correlation {:.4f}\n",
      what, 100 * errors.mean, 100 * errors.median, 100 * errors.percentile_95, 100 * errors.most,
      100 * errors.share_within_5_percent, errors.correlation);
}

std::string summary_text(const Study& study) {
  const Pairs steps = step_pairs(study);
  const Pairs memory = memory_pairs(study);
  std::string text =
      summary_line("step time", summarise_errors(steps.predicted, steps.measured)) +
      summary_line("peak memory of the process", summarise_errors(memory.predicted, memory.measured));
  std::vector<double> spreads;
  std::vector<double> r_squared;
  std::vector<double> scaled;
  std::vector<double> attainable;
  std::size_t num_within = 0;
  for (const StudyResult* const result : measured_of(study)) {
    spreads.push_back(result->spread());
    if (std::abs(result->step_error()) <= std::max(0.05, result->spread())) ++num_within;
    if (!has_random_steps(*result)) continue;
    r_squared.push_back(result->step_r_squared());
    scaled.push_back(result->scaled_step_r_squared());
    if (const auto most = result->attainable_step_r_squared()) attainable.push_back(*most);
  }
  if (study.repeats > 1)
    text += fmt::format(
        "- from run to run, step times of a configuration spread by {:.1f} % in the mean, {:.1f} % at the "
        "95th "
        "percentile; {} of {} errors are within 5 % or that spread\n",
        100 * mean_of(spreads), 100 * quantile_of(spreads, 0.95), num_within, spreads.size());
  if (!r_squared.empty())
    text += fmt::format(
        "- single steps of {} configurations with steps of different sizes: R² {:.3f} in the median, {:.3f} "
        "at "
        "the least; {:.3f} and {:.3f} if their means were predicted rightly{}\n",
        r_squared.size(), quantile_of(r_squared, 0.5), std::ranges::min(r_squared), quantile_of(scaled, 0.5),
        std::ranges::min(scaled),
        attainable.empty() ? std::string()
                           : fmt::format("; what differs from run to run allows {:.3f} and {:.3f}",
                                         quantile_of(attainable, 0.5), std::ranges::min(attainable)));
  const std::vector<Regret> of_works = regrets(study);
  if (of_works.empty()) return text;
  std::vector<double> each;
  for (const Regret& regret : of_works) each.push_back(regret.regret);
  return text + fmt::format("- regret over {} works: {:.1f} % in the mean, {:.1f} % at most\n", each.size(),
                            100 * mean_of(each), 100 * std::ranges::max(each));
}

std::string result_row(const StudyResult& result, bool has_spread) {
  std::string row =
      fmt::format("| {} | {} | {:.2f} | {:.2f} | {:+.1f} % |", result.name, result.prediction.num_steps,
                  1e3 * result.predicted_step(), 1e3 * result.measured_step(), 100 * result.step_error());
  if (has_spread) row += fmt::format(" {:.1f} % |", 100 * result.spread());
  row += has_random_steps(result) ? fmt::format(" {:.3f} |", result.step_r_squared()) : " |";
  return row + fmt::format(" {} | {} | {:+.1f} % |\n", base::format_bytes(result.prediction.peak_bytes),
                           base::format_bytes(result.used_bytes()), 100 * result.memory_error());
}

std::string results_table(const Study& study) {
  const bool has_spread = study.repeats > 1;
  std::string text = fmt::format(
      "| configuration | steps | predicted ms | measured ms | error |{} R² of steps | predicted peak | "
      "measured peak | "
      "error |\n|---|--:|--:|--:|--:|{}--:|--:|--:|--:|\n",
      has_spread ? " spread |" : "", has_spread ? "--:|" : "");
  for (const StudyResult* const result : measured_of(study)) text += result_row(*result, has_spread);
  return text;
}

std::string regret_table(const Study& study) {
  const std::vector<const StudyResult*> measured = measured_of(study);
  std::string text =
      "| work | configurations | predicted to be the fastest | measured to be | regret "
      "|\n|---|--:|---|---|--:|\n";
  for (const Regret& regret : regrets(study))
    text += fmt::format("| {} | {} | {} | {} | {:.1f} % |\n", regret.work, regret.num_ways,
                        measured[regret.chosen]->name, measured[regret.fastest]->name, 100 * regret.regret);
  return text;
}

std::string problems_text(const Study& study) {
  std::string text;
  for (const StudyResult& result : study.results)
    if (!result.failure.empty()) text += fmt::format("- failed: {}: {}\n", result.name, result.failure);
  for (const std::string& line : study.left_out) text += fmt::format("- refused: {}\n", line);
  return text.empty() ? "" : "\n## Not measured\n\n" + text;
}

ordered_json run_json(const StudyMeasurement& run) {
  ordered_json object = {{"step_seconds", run.step_seconds},   {"step_tokens", run.step_tokens},
                         {"planned_bytes", run.planned_bytes}, {"used_bytes", run.used_bytes},
                         {"exposed_seconds", nullptr},         {"skew_seconds", nullptr}};
  if (run.exposed_seconds) object["exposed_seconds"] = *run.exposed_seconds;
  if (run.skew_seconds) object["skew_seconds"] = *run.skew_seconds;
  return object;
}

ordered_json result_json(const StudyResult& result) {
  const StudyPrediction& prediction = result.prediction;
  ordered_json object = {{"name", result.name},
                         {"work", result.configuration.work()},
                         {"arguments", result.configuration.arguments},
                         {"predicted",
                          {{"num_steps", prediction.num_steps},
                           {"step_seconds", prediction.step_seconds},
                           {"breakdown_seconds", breakdown_json(prediction.breakdown)},
                           {"skew_seconds", prediction.skew_seconds},
                           {"planned_bytes", prediction.planned_bytes},
                           {"peak_bytes", prediction.peak_bytes}}},
                         {"runs", ordered_json::array()},
                         {"failure", nullptr}};
  for (const StudyMeasurement& run : result.runs) object["runs"].push_back(run_json(run));
  if (!result.failure.empty()) object["failure"] = result.failure;
  if (!result.is_measured()) return object;
  object["step"] = {{"predicted_seconds", result.predicted_step()},
                    {"measured_seconds", result.measured_step()},
                    {"error", result.step_error()},
                    {"spread", result.spread()},
                    {"r_squared", nullptr},
                    {"scaled_r_squared", nullptr},
                    {"attainable_r_squared", nullptr},
                    {"tokens", result.tokens_per_step()}};
  if (has_random_steps(result)) {
    object["step"]["r_squared"] = result.step_r_squared();
    object["step"]["scaled_r_squared"] = result.scaled_step_r_squared();
    if (const auto most = result.attainable_step_r_squared()) object["step"]["attainable_r_squared"] = *most;
  }
  object["memory"] = {{"predicted_bytes", prediction.peak_bytes},
                      {"measured_bytes", result.used_bytes()},
                      {"error", result.memory_error()}};
  return object;
}

ordered_json errors_json(const ErrorSummary& errors) {
  return {{"count", errors.count},
          {"mean", errors.mean},
          {"median", errors.median},
          {"percentile_95", errors.percentile_95},
          {"most", errors.most},
          {"share_within_5_percent", errors.share_within_5_percent},
          {"correlation", errors.correlation}};
}

/// A series for each model.
std::vector<trace::ScatterSeries> by_model(const Study& study, double (*x)(const StudyResult&),
                                           double (*y)(const StudyResult&)) {
  std::map<std::string, trace::ScatterSeries> series;
  for (const StudyResult* const result : measured_of(study)) {
    const std::string& model = model_name(result->configuration.options.model);
    series[model].name = model;
    series[model].points.push_back({.x = x(*result), .y = y(*result), .label = result->name});
  }
  std::vector<trace::ScatterSeries> all;
  for (auto& [model, one] : series) all.push_back(std::move(one));
  return all;
}

}  // namespace

std::string study_markdown(const Study& study) {
  std::string text = fmt::format(
      "# Predicted and measured: {} configurations\n\n{}. Grid {}, {} each, ranks are {}. Predicted before "
      "the run, "
      "from {}. Steps count from the {}th on.\n\n",
      measured_of(study).size(), study.machine, study.grid,
      study.repeats == 1 ? "one run" : fmt::format("{} runs in turns", study.repeats),
      study.engine == StudyEngine::Mpi ? "processes (MPI)" : "threads",
      study.is_calibrated ? "a calibration of the machine"
                          : "a second of measuring the configuration's own operations",
      StudyResult::kNumBefore + 1);
  if (!measured_of(study).empty()) text += summary_text(study) + "\n" + results_table(study);
  if (!regrets(study).empty())
    text += "\n## The plan that the prediction would choose\n\n" + regret_table(study);
  return text + study_answers(study.results, study.engine) + study.scale_answer + problems_text(study);
}

std::string study_json(const Study& study) {
  const Pairs steps = step_pairs(study);
  const Pairs memory = memory_pairs(study);
  ordered_json object = {{"machine", study.machine},
                         {"grid", study.grid},
                         {"engine", study.engine == StudyEngine::Mpi ? "mpi" : "threads"},
                         {"repeats", study.repeats},
                         {"calibrated", study.is_calibrated},
                         {"steps_before", StudyResult::kNumBefore},
                         {"step_errors", errors_json(summarise_errors(steps.predicted, steps.measured))},
                         {"memory_errors", errors_json(summarise_errors(memory.predicted, memory.measured))},
                         {"regrets", ordered_json::array()},
                         {"configurations", ordered_json::array()},
                         {"left_out", study.left_out}};
  const std::vector<const StudyResult*> measured = measured_of(study);
  for (const Regret& regret : regrets(study))
    object["regrets"].push_back({{"work", regret.work},
                                 {"chosen", measured[regret.chosen]->name},
                                 {"fastest", measured[regret.fastest]->name},
                                 {"regret", regret.regret}});
  for (const StudyResult& result : study.results) object["configurations"].push_back(result_json(result));
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string step_time_plot(const Study& study) {
  const Pairs steps = step_pairs(study);
  const ErrorSummary errors = summarise_errors(steps.predicted, steps.measured);
  return trace::write_svg(trace::ScatterPlot{
      .title = "Step time, predicted and measured",
      .subtitle =
          fmt::format("{} configurations, mean error {:.1f} %; dashed: 5 %", errors.count, 100 * errors.mean),
      .x_label = "measured, ms",
      .y_label = "predicted, ms",
      .series = by_model(
          study, [](const StudyResult& result) { return 1e3 * result.measured_step(); },
          [](const StudyResult& result) { return 1e3 * result.predicted_step(); }),
      .axes = trace::ScatterPlot::Axes::Logarithmic,
      .band = 0.05});
}

std::string memory_plot(const Study& study) {
  const Pairs memory = memory_pairs(study);
  const ErrorSummary errors = summarise_errors(memory.predicted, memory.measured);
  return trace::write_svg(trace::ScatterPlot{
      .title = "Peak memory of the process, predicted and measured",
      .subtitle =
          fmt::format("{} configurations, mean error {:.1f} %; dashed: 5 %", errors.count, 100 * errors.mean),
      .x_label = "measured, MB",
      .y_label = "predicted, MB",
      .series = by_model(
          study, [](const StudyResult& result) { return 1e-6 * static_cast<double>(result.used_bytes()); },
          [](const StudyResult& result) { return 1e-6 * static_cast<double>(result.prediction.peak_bytes); }),
      .axes = trace::ScatterPlot::Axes::Logarithmic,
      .band = 0.05});
}

std::string single_steps_plot(const Study& study) {
  constexpr std::size_t kMostPoints = 100;  // of a configuration: more only cover each other
  constexpr std::size_t kMostSeries = 8;    // as many as have colours of their own
  trace::ScatterPlot plot{.title = "Single steps of different sizes",
                          .subtitle = "as shares of the mean step of their configuration",
                          .x_label = "measured / mean measured",
                          .y_label = "predicted / mean measured"};
  std::map<std::string, trace::ScatterSeries> series;
  for (const StudyResult* const result : measured_of(study)) {
    if (!has_random_steps(*result)) continue;
    const std::string& model = model_name(result->configuration.options.model);
    if (!series.contains(model) && series.size() == kMostSeries) continue;
    trace::ScatterSeries& own = series[model];
    own.name = model;
    const std::vector<double> predicted = result->predicted_steps();
    const std::vector<double> measured = result->measured_steps();
    const double mean = result->measured_step();
    for (std::size_t i = 0; i < std::min(predicted.size(), kMostPoints); ++i)
      own.points.push_back(
          {.x = measured[i] / mean,
           .y = predicted[i] / mean,
           .label = fmt::format("{}, step {}", result->name, StudyResult::kNumBefore + i + 1)});
  }
  for (auto& [model, one] : series) plot.series.push_back(std::move(one));
  return trace::write_svg(plot);
}

}  // namespace plenum::train
