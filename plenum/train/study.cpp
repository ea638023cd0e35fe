#include "plenum/train/study.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/describe/bert.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/study_answers.h"

namespace plenum::train {
namespace {

/// Those that train takes.
std::vector<StudyConfiguration> accepted_configurations(const StudyRequest& request,
                                                        std::vector<std::string>& left_out) {
  std::vector<StudyConfiguration> accepted;
  for (StudyConfiguration& configuration : study_grid(request.grid)) {
    const std::string given = fmt::format("{}", fmt::join(configuration.arguments, " "));
    try {
      settle_configuration(request.setting, configuration);
      accepted.push_back(std::move(configuration));
    } catch (const base::UserError& error) {
      if (!configuration.place.empty()) base::fail("{}: {}", configuration.place, error.what());
      left_out.push_back(fmt::format("{}: {}", given, error.what()));
    }
  }
  base::require(!accepted.empty(), "no configuration is left to be studied: {}",
                left_out.empty() ? "the grid has none for these ranks" : left_out.front());
  return accepted;
}

void make_name_unique(const std::vector<std::optional<StudyResult>>& others, StudyResult& result) {
  const std::string name = result.name;
  const auto is_taken = [&](const std::optional<StudyResult>& other) {
    return other && other->name == result.name;
  };
  for (int number = 2; std::ranges::any_of(others, is_taken); ++number)
    result.name = fmt::format("{} ({})", name, number);
}

void measure_once(const StudySetting& setting, StudyResult& result) {
  try {
    result.runs.push_back(measure_configuration(setting, result));
    base::require(!result.measured_steps().empty(),
                  "the run has no step that counts: {} are done, of which {} do not",
                  result.runs.back().step_seconds.size(), StudyResult::kNumBefore);
  } catch (const base::UserError& error) {
    result.failure = error.what();
  }
}

std::string told_of(const StudyResult& result, std::size_t index, std::size_t count) {
  if (!result.failure.empty())
    return fmt::format("[{}/{}] {}: {}", index + 1, count, result.name, result.failure);
  return fmt::format("[{}/{}] {}: predicted {:.2f} ms, measured {:.2f} ms ({:+.1f} %)", index + 1, count,
                     result.name, 1e3 * result.predicted_step(), 1e3 * result.measured_step(),
                     100 * result.step_error());
}

}  // namespace

Study run_study(const StudyRequest& request, const std::function<void(std::string_view)>& tell) {
  const base::Machine machine = base::inspect_machine();
  Study study{.machine = fmt::format("{}, {} cores", machine.cpu_model, machine.usable_cores),
              .grid = request.grid.name,
              .engine = request.setting.engine,
              .repeats = request.repeats,
              .is_calibrated = !request.setting.machine.empty()};
  const std::vector<StudyConfiguration> configurations = accepted_configurations(request, study.left_out);
  std::vector<std::optional<StudyResult>> results(configurations.size());
  for (std::int64_t repeat = 0; repeat < request.repeats; ++repeat) {
    for (std::size_t i = 0; i < configurations.size(); ++i) {
      if (!results[i]) {
        StudyResult predicted = predict_configuration(request.setting, configurations[i]);
        make_name_unique(results, predicted);
        results[i] = std::move(predicted);
      }
      if (!results[i]->failure.empty()) continue;
      measure_once(request.setting, *results[i]);
      tell(told_of(*results[i], i, configurations.size()));
    }
  }
  for (std::optional<StudyResult>& result : results) study.results.push_back(std::move(*result));
  const PreparedData data(request.setting.data);
  ModelSettings model;
  model.preset = "bert-base";
  study.scale_answer =
      scale_answer(describe::describe_bert(starting_model(model, data)), data.training().histogram());
  return study;
}

}  // namespace plenum::train
