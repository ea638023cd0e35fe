#include "plenum/train/run_progress.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/lock_file.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kNumRecent = 32;

double number_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// Nothing for a line that is no step, as one that is just being written.
std::optional<RecordedStep> parse_step(const std::string& line) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object() || number_in(object, "step") < 1) return std::nullopt;
  RecordedStep step{.step = static_cast<std::uint64_t>(number_in(object, "step")),
                    .num_steps = static_cast<std::uint64_t>(number_in(object, "num_steps")),
                    .loss = std::nullopt,
                    .is_skipped = object.value("skipped", json(false)) == true,
                    .learning_rate = number_in(object, "lr"),
                    .tokens_per_second = number_in(object, "tokens_per_second"),
                    .seconds = number_in(object, "seconds"),
                    .epoch = number_in(object, "epoch"),
                    .wall_seconds = number_in(object, "wall_seconds")};
  if (object.contains("loss") && object["loss"].is_number()) step.loss = object["loss"].get<double>();
  return step;
}

std::optional<RecordedEvaluation> parse_evaluation(const std::string& line) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("loss") || !object["loss"].is_number()) return std::nullopt;
  RecordedEvaluation evaluation{.step = static_cast<std::uint64_t>(number_in(object, "step")),
                                .loss = object["loss"].get<double>(),
                                .accuracy = std::nullopt};
  for (const char* key : {"mlm_accuracy", "accuracy"}) {
    if (object.contains(key) && object[key].is_number()) evaluation.accuracy = object[key].get<double>();
  }
  return evaluation;
}

/// The lines of a file that begin behind `offset`, or at it where it is 0, until `use` has had enough.
void read_lines(std::ifstream& file, std::uint64_t offset,
                const std::function<bool(const std::string&)>& use) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  std::string line;
  if (offset > 0) std::getline(file, line);  // its beginning lies before
  while (std::getline(file, line) && !file.eof()) {
    if (!use(line)) return;
  }
}

/// Steps at places that are evenly spread over the file, whose lines are of nearly the same length.
std::vector<RecordedStep> sample_steps(std::ifstream& file, std::uint64_t size, std::size_t num_samples) {
  constexpr std::size_t kAtAPlace = 4;  // so that noise does not hide the curve
  const std::size_t num_places = std::max<std::size_t>(1, num_samples / kAtAPlace);
  std::vector<RecordedStep> steps;
  for (std::size_t i = 0; i < num_places; ++i) {
    std::size_t num_read = 0;
    read_lines(file, size * i / num_places, [&](const std::string& line) {
      const std::optional<RecordedStep> step = parse_step(line);
      if (step && (steps.empty() || step->step > steps.back().step)) steps.push_back(*step);
      return ++num_read < kAtAPlace;
    });
  }
  return steps;
}

std::vector<RecordedStep> last_steps(std::ifstream& file, std::uint64_t size) {
  constexpr std::uint64_t kBytesOfRecent = 1 << 14;
  std::vector<RecordedStep> steps;
  read_lines(file, size > kBytesOfRecent ? size - kBytesOfRecent : 0, [&](const std::string& line) {
    if (const std::optional<RecordedStep> step = parse_step(line)) steps.push_back(*step);
    return true;
  });
  if (steps.size() > kNumRecent) steps.erase(steps.begin(), steps.end() - kNumRecent);
  return steps;
}

double seconds_since_change(const std::string& path) {
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - changed).count();
}

}  // namespace

bool RunProgress::is_finished() const {
  return !recent.empty() && recent.back().num_steps > 0 && recent.back().step >= recent.back().num_steps;
}

double RunProgress::tokens_per_second() const {
  double tokens = 0;
  double seconds = 0;
  for (const RecordedStep& step : recent) {
    tokens += step.tokens_per_second * step.seconds;
    seconds += step.seconds;
  }
  return seconds > 0 ? tokens / seconds : 0;
}

double RunProgress::seconds_left() const {
  if (recent.empty() || recent.back().num_steps <= recent.back().step) return 0;
  double seconds = 0;
  for (const RecordedStep& step : recent) seconds += step.seconds;
  const auto num_left = static_cast<double>(recent.back().num_steps - recent.back().step);
  return num_left * seconds / static_cast<double>(recent.size());
}

RunProgress read_run_progress(const std::string& directory, std::size_t num_samples) {
  const RunPaths paths(directory);
  base::require(fs::exists(paths.lock) && fs::exists(paths.config),
                "{} is not the directory of a run; name one that plenum train has begun", directory);
  RunProgress progress;
  progress.is_locked = io::is_lock_held(paths.lock);
  std::error_code error;
  const std::uint64_t size = fs::file_size(paths.metrics, error);
  if (!error) {
    std::ifstream file(paths.metrics, std::ios::binary);
    progress.steps = sample_steps(file, size, num_samples);
    progress.recent = last_steps(file, size);
    progress.silent_seconds = seconds_since_change(paths.metrics);
  }
  if (!progress.recent.empty() &&
      (progress.steps.empty() || progress.steps.back().step < progress.recent.back().step))
    progress.steps.push_back(progress.recent.back());
  std::ifstream evaluations(paths.evaluations, std::ios::binary);
  read_lines(evaluations, 0, [&](const std::string& line) {
    const std::optional<RecordedEvaluation> evaluation = parse_evaluation(line);
    if (!evaluation) return true;
    progress.last_evaluation = evaluation;
    if (!progress.best_evaluation || evaluation->loss < progress.best_evaluation->loss)
      progress.best_evaluation = evaluation;
    return true;
  });
  const std::vector<std::string> checkpoints = CheckpointStore(directory, 1).list();
  if (!checkpoints.empty()) progress.checkpoint = checkpoints.back();
  return progress;
}

}  // namespace plenum::train
