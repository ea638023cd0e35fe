#include "plenum/train/metrics.h"

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::train {
namespace {

using nlohmann::ordered_json;

/// The step that a line states; nothing for a line that is no such object.
std::optional<std::uint64_t> step_of_line(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_unsigned()) {
    return std::nullopt;
  }
  return object["step"].get<std::uint64_t>();
}

/// The lines that belong to steps up to some step.
struct KeptLines {
  std::uint64_t num_bytes = 0;
  std::string last;  ///< without its end
};

/// Found from the end of the file.
KeptLines lines_up_to(const std::string& path, std::uint64_t last_step) {
  if (!io::path_exists(path)) return {};
  const io::MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::size_t end = text.rfind('\n') + 1;  // 0 without any
  while (end > 0) {
    const std::size_t begin = end < 2 ? 0 : text.rfind('\n', end - 2) + 1;
    const std::optional<std::uint64_t> step = step_of_line(text.substr(begin, end - begin));
    if (step && *step <= last_step) return {end, std::string(text.substr(begin, end - begin - 1))};
    end = begin;
  }
  return {};
}

/// Nothing where the line has none, as those of earlier versions.
double wall_seconds_in(const std::string& line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("wall_seconds")) return 0;
  const nlohmann::json& seconds = object["wall_seconds"];
  return seconds.is_number() ? seconds.get<double>() : 0;
}

double tokens_per_second(const StepReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.work.tokens) / report.seconds : 0.0;
}

ordered_json or_null(std::optional<double> value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json to_json(const StepReport& report, const std::vector<describe::Objective>& objectives) {
  ordered_json object = {{"step", report.step}, {"loss", or_null(report.outcome.known_loss())}};
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    object[objectives[i].name + "_loss"] = or_null(report.outcome.known_loss(i));
  }
  object.update({{"lr", report.learning_rate},
                 {"gradient_norm", report.outcome.gradient_norm},
                 {"real_tokens", report.work.tokens},
                 {"padded_tokens", report.padded_tokens},
                 {"sequences", report.work.sequences},
                 {"seconds", report.seconds},
                 {"tokens_per_second", tokens_per_second(report)},
                 {"flops", report.flops},
                 {"skipped", report.outcome.is_skipped}});
  return object;
}

ordered_json to_json(std::uint64_t step, const Evaluation& evaluation) {
  ordered_json object = {{"step", step}, {"loss", evaluation.loss()}};
  for (const ObjectiveResult& result : evaluation.objectives) {
    object[result.objective.name + "_loss"] = result.loss;
    if (evaluation.scores.empty()) object[result.objective.name + "_accuracy"] = result.accuracy;
  }
  for (const data::TaskScore& score : evaluation.scores) object[score.name] = score.value;
  object["sequences"] = evaluation.sequences;
  for (const ObjectiveResult& result : evaluation.objectives) {
    if (!result.objective.count_key.empty()) object[result.objective.count_key] = result.labels;
  }
  object["seconds"] = evaluation.seconds;
  return object;
}

/// Seconds since 1970.
double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

StepLines::StepLines(std::string path, std::uint64_t last_step) : path_(std::move(path)) {
  KeptLines kept = lines_up_to(path_, last_step);
  last_kept_ = std::move(kept.last);
  size_ = kept.num_bytes;
  file_.emplace(path_, size_);
}

void StepLines::append(const std::string& object) {
  if (!file_) file_.emplace(path_, size_);
  try {
    file_->append(object + "\n");
    file_->flush();
  } catch (...) {
    file_.reset();
    throw;
  }
  size_ = file_->size();
}

void StepLines::sync() const {
  if (file_) file_->sync();
}

Metrics::Metrics(const RunPaths& paths, const TrainingState& state, const RunExtent& extent,
                 std::vector<describe::Objective> objectives)
    : extent_(extent),
      objectives_(std::move(objectives)),
      steps_(paths.metrics, state.step),
      evaluations_(paths.evaluations, state.evaluated_step),
      events_(paths.tensorboard, host_name(), ::getpid(), wall_time(),
              static_cast<std::int64_t>(state.step + 1)),
      earlier_seconds_(wall_seconds_in(steps_.last_kept())) {}

double Metrics::wall_seconds() const {
  const auto passed = std::chrono::steady_clock::now() - begin_;
  return earlier_seconds_ + std::chrono::duration<double>(passed).count();
}

void Metrics::add(const StepReport& report) {
  const double epoch = epoch_of(report.step);
  const double wall_seconds = this->wall_seconds();
  ordered_json object = to_json(report, objectives_);
  object.update({{"num_steps", extent_.num_steps}, {"epoch", epoch}, {"wall_seconds", wall_seconds}});
  steps_.append(object.dump());
  Values values;
  const auto add_loss = [&](const std::string& tag, std::optional<double> loss) {
    if (loss) values.emplace_back(tag, *loss);
  };
  add_loss("train/loss", report.outcome.known_loss());
  for (std::size_t i = 0; i < objectives_.size(); ++i)
    add_loss("train/" + objectives_[i].name + "_loss", report.outcome.known_loss(i));
  values.emplace_back("train/learning_rate", report.learning_rate);
  values.emplace_back("train/gradient_norm", report.outcome.gradient_norm);
  values.emplace_back("train/tokens_per_second", tokens_per_second(report));
  values.emplace_back("train/epoch", epoch);
  values.emplace_back("train/wall_seconds", wall_seconds);
  add_scalars(report.step, values);
}

void Metrics::add(std::uint64_t step, const Evaluation& evaluation) {
  ordered_json object = to_json(step, evaluation);
  object.update({{"epoch", epoch_of(step)}, {"wall_seconds", wall_seconds()}});
  evaluations_.append(object.dump());
  Values values = {{"eval/loss", evaluation.loss()}};
  for (const ObjectiveResult& result : evaluation.objectives) {
    values.emplace_back("eval/" + result.objective.name + "_loss", result.loss);
    if (evaluation.scores.empty())
      values.emplace_back("eval/" + result.objective.name + "_accuracy", result.accuracy);
  }
  for (const data::TaskScore& score : evaluation.scores)
    values.emplace_back("eval/" + score.name, score.value);
  add_scalars(step, values);
}

void Metrics::add_scalars(std::uint64_t step, const Values& values) {
  std::vector<io::Scalar> scalars;
  for (const auto& [tag, value] : values) scalars.push_back({tag, static_cast<float>(value)});
  events_.append(static_cast<std::int64_t>(step), wall_time(), scalars);
  events_.flush();
}

void Metrics::sync() const {
  steps_.sync();
  evaluations_.sync();
  events_.sync();
}

}  // namespace plenum::train
