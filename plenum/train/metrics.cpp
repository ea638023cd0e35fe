#include "plenum/train/metrics.h"

#include <array>
#include <chrono>
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
std::optional<std::uint64_t> step_of(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_unsigned()) {
    return std::nullopt;
  }
  return object["step"].get<std::uint64_t>();
}

/// The bytes of the lines that belong to steps up to `last_step`, found from the end.
std::uint64_t size_up_to(const std::string& path, std::uint64_t last_step) {
  if (!io::path_exists(path)) return 0;
  const io::MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::size_t end = text.rfind('\n') + 1;  // 0 without any
  while (end > 0) {
    const std::size_t begin = end < 2 ? 0 : text.rfind('\n', end - 2) + 1;
    const std::optional<std::uint64_t> step = step_of(text.substr(begin, end - begin));
    if (step && *step <= last_step) return end;
    end = begin;
  }
  return 0;
}

ordered_json to_json(const StepReport& report) {
  const double seconds = report.seconds;
  return {{"step", report.step},
          {"loss", report.outcome.loss()},
          {"mlm_loss", report.outcome.masked_loss},
          {"nsp_loss", report.outcome.next_sentence_loss},
          {"lr", report.learning_rate},
          {"gradient_norm", report.outcome.gradient_norm},
          {"real_tokens", report.work.tokens},
          {"padded_tokens", report.padded_tokens},
          {"sequences", report.work.sequences},
          {"seconds", seconds},
          {"tokens_per_second", seconds > 0 ? static_cast<double>(report.work.tokens) / seconds : 0.0},
          {"flops", report.flops},
          {"skipped", report.outcome.is_skipped}};
}

ordered_json to_json(std::uint64_t step, const Evaluation& evaluation) {
  ordered_json object = {{"step", step},
                         {"loss", evaluation.loss()},
                         {"mlm_loss", evaluation.masked_loss},
                         {"mlm_accuracy", evaluation.masked_accuracy}};
  if (evaluation.has_next_sentence) {
    object["nsp_loss"] = evaluation.next_sentence_loss;
    object["nsp_accuracy"] = evaluation.next_sentence_accuracy;
  }
  object["sequences"] = evaluation.sequences;
  object["masked"] = evaluation.masked;
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

StepLines::StepLines(std::string path, std::uint64_t last_step)
    : path_(std::move(path)), size_(size_up_to(path_, last_step)) {
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

Metrics::Metrics(const RunPaths& paths, std::uint64_t last_step)
    : steps_(paths.metrics, last_step),
      evaluations_(paths.evaluations, last_step),
      events_(paths.tensorboard, host_name(), ::getpid(), wall_time(),
              static_cast<std::int64_t>(last_step + 1)) {}

void Metrics::add(const StepReport& report) {
  steps_.append(to_json(report).dump());
  const double tokens_per_second = static_cast<double>(report.work.tokens) / report.seconds;
  const std::array<io::Scalar, 6> scalars = {{
      {"train/loss", static_cast<float>(report.outcome.loss())},
      {"train/mlm_loss", static_cast<float>(report.outcome.masked_loss)},
      {"train/nsp_loss", static_cast<float>(report.outcome.next_sentence_loss)},
      {"train/learning_rate", static_cast<float>(report.learning_rate)},
      {"train/gradient_norm", static_cast<float>(report.outcome.gradient_norm)},
      {"train/tokens_per_second", static_cast<float>(tokens_per_second)},
  }};
  events_.append(static_cast<std::int64_t>(report.step), wall_time(), scalars);
  events_.flush();
}

void Metrics::add(std::uint64_t step, const Evaluation& evaluation) {
  evaluations_.append(to_json(step, evaluation).dump());
  const std::array<io::Scalar, 3> scalars = {{
      {"eval/loss", static_cast<float>(evaluation.loss())},
      {"eval/mlm_loss", static_cast<float>(evaluation.masked_loss)},
      {"eval/mlm_accuracy", static_cast<float>(evaluation.masked_accuracy)},
  }};
  events_.append(static_cast<std::int64_t>(step), wall_time(), scalars);
  events_.flush();
}

void Metrics::sync() const {
  steps_.sync();
  evaluations_.sync();
  events_.sync();
}

}  // namespace plenum::train
