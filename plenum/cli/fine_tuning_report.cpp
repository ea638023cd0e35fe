#include "plenum/cli/fine_tuning_report.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/ranges.h>

#include "plenum/base/units.h"
#include "plenum/cli/training_summary.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/task_settings.h"

namespace plenum::cli {
namespace {

using Scores = std::vector<data::TaskScore>;

/// Mean and standard deviation of a sample.
struct Spread {
  double mean = 0;
  double deviation = 0;  ///< 0 of one value
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

/// One column of the table: a score of --dev or --test.
struct SeedColumn {
  std::string split;
  std::string name;
  std::vector<double> values;  ///< of each seed
};

std::vector<SeedColumn> columns_of(const std::vector<SeedResult>& results) {
  std::vector<SeedColumn> columns;
  const auto add = [&](const char* split, Scores SeedResult::*scores) {
    const std::size_t num_scores = results.empty() ? 0 : (results.front().*scores).size();
    for (std::size_t i = 0; i < num_scores; ++i) {
      SeedColumn& column = columns.emplace_back(SeedColumn{split, (results.front().*scores)[i].name, {}});
      for (const SeedResult& result : results) column.values.push_back((result.*scores)[i].value);
    }
  };
  add("dev", &SeedResult::dev);
  add("test", &SeedResult::test);
  return columns;
}

/// Of the highest value on --dev, or the lowest loss, the first of equals; null where none has one.
const SeedResult* best_of(const std::vector<SeedResult>& results, const std::string& metric) {
  const auto value_of = [&](const SeedResult& result) -> std::optional<double> {
    if (metric == train::kLossMetric) return result.loss ? std::optional(-*result.loss) : std::nullopt;
    const auto score = std::ranges::find(result.dev, metric, &data::TaskScore::name);
    return score == result.dev.end() || std::isnan(score->value) ? std::nullopt : std::optional(score->value);
  };
  const SeedResult* best = nullptr;
  for (const SeedResult& result : results)
    if (value_of(result) && (best == nullptr || *value_of(result) > *value_of(*best))) best = &result;
  return best;
}

std::string seeds_table(const std::vector<SeedResult>& results) {
  constexpr int kNarrowestColumn = 8;
  const std::vector<SeedColumn> columns = columns_of(results);
  std::vector<std::string> titles;
  for (const SeedColumn& column : columns)
    titles.push_back(fmt::format("{:>{}}", column.split + " " + column.name, kNarrowestColumn));
  std::string text = "seed";
  for (const std::string& title : titles) text += "  " + title;
  text += '\n';
  const auto add_row = [&](const std::string& name, const auto& value_of) {
    text += fmt::format("{:<4}", name);
    for (std::size_t i = 0; i < columns.size(); ++i)
      text += fmt::format("  {:>{}.4f}", value_of(columns[i]), titles[i].size());
    text += '\n';
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    add_row(fmt::format("{}", results[i].seed), [i](const SeedColumn& column) { return column.values[i]; });
  }
  add_row("mean", [](const SeedColumn& column) { return spread_of(column.values).mean; });
  add_row("std", [](const SeedColumn& column) { return spread_of(column.values).deviation; });
  return text;
}

}  // namespace

std::string scores_text(const Scores& scores) {
  std::vector<std::string> parts;
  for (const data::TaskScore& score : scores)
    parts.push_back(fmt::format("{} {:.4f}", score.name, score.value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::ordered_json scores_object(const Scores& scores) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const data::TaskScore& score : scores) object[score.name] = score.value;
  return object;
}

std::string fine_tuning_text(const train::TrainingResult& result, const train::FineTunedModel& model,
                             const std::string& run) {
  std::string text = progress_text(result);
  text += fmt::format("checkpoint: {} ({})\n", model.source.directory, model.source.remark);
  for (const train::FineTunedModel::Labelled& labelled : model.labelled) {
    text += fmt::format("{}: {}{} examples, predictions in {}\n", labelled.name,
                        labelled.scores.empty() ? "" : scores_text(labelled.scores) + "; ",
                        base::format_count(labelled.num_examples), labelled.file);
  }
  const train::RunPaths paths(run);
  text +=
      fmt::format("metrics: {}, {}; TensorBoard: {}\n", paths.metrics, paths.evaluations, paths.tensorboard);
  text += fmt::format("model: {}, for transformers\n", model.directory);
  return text + fmt::format("next: plenum predict --model {} --input FILE\n", run);
}

nlohmann::ordered_json fine_tuning_object(const train::TrainingResult& result,
                                          const train::FineTunedModel& model, const std::string& run) {
  nlohmann::ordered_json object = summary_object(result, run);
  object["best_checkpoint"] = model.source.directory;
  object["model"] = model.directory;
  for (const train::FineTunedModel::Labelled& labelled : model.labelled) {
    object[labelled.name] = {{"file", labelled.path},
                             {"examples", labelled.num_examples},
                             {"predictions", labelled.file},
                             {"scores", scores_object(labelled.scores)}};
  }
  return object;
}

std::string seeds_text(const std::vector<SeedResult>& results, const std::string& metric,
                       const std::string& directory) {
  const SeedResult* best = best_of(results, metric);
  std::string text =
      columns_of(results).empty()
          ? fmt::format("fine-tuned with {} seeds; to compare them add --dev FILE\n", results.size())
          : seeds_table(results);
  if (best != nullptr) {
    const auto score = std::ranges::find(best->dev, metric, &data::TaskScore::name);
    text += fmt::format("best: {} (dev {} {:.4f})\n", best->run, metric,
                        score == best->dev.end() ? best->loss.value_or(0) : score->value);
  }
  const std::string& run = (best != nullptr ? *best : results.front()).run;
  text += fmt::format("scores: {}/seeds.json\n", directory);
  text += fmt::format("model: {}, for transformers\n", train::RunPaths(run).model);
  return text + fmt::format("next: plenum predict --model {} --input FILE\n", run);
}

nlohmann::ordered_json seeds_object(const std::vector<SeedResult>& results, const std::string& metric) {
  nlohmann::ordered_json object;
  for (const SeedResult& result : results) {
    object["seeds"].push_back({{"seed", result.seed},
                               {"run", result.run},
                               {"dev", scores_object(result.dev)},
                               {"test", scores_object(result.test)}});
  }
  for (const SeedColumn& column : columns_of(results)) {
    const Spread spread = spread_of(column.values);
    object[column.split][column.name] = {{"mean", spread.mean}, {"standard_deviation", spread.deviation}};
  }
  if (const SeedResult* best = best_of(results, metric)) object["best"] = best->run;
  return object;
}

}  // namespace plenum::cli
