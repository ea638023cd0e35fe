#include "plenum/train/task_data.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/data/tasks/task_scores.h"
#include "plenum/data/tokenizer/tokenizer_files.h"
#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/model_source.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {
namespace {

/// The run's own once it has one: what it began with may be gone.
std::string tokenizer_for(const RunOptions& options) {
  const std::string kept = RunPaths(options.run.directory).tokenizer;
  return io::path_exists(kept + "/vocab.txt") ? kept : tokenizer_beside(options.model.init);
}

/// Looks at the whole file now: an error in it is not to come when all is trained.
void require_readable(const TaskSettings& settings, const describe::Task& task) {
  if (!settings.test.empty())
    static_cast<void>(data::read_examples(settings.test, task, settings.data, data::Labelled::Optional));
}

void require_metric(const TaskSettings& settings, const describe::Task& task) {
  const std::vector<std::string> names = data::score_names(task);
  const bool is_known = settings.metric.empty() || settings.metric == kLossMetric ||
                        std::ranges::find(names, settings.metric) != names.end();
  base::require(is_known, "--metric must be {} or loss for --task {}: '{}'", fmt::join(names, ", "),
                describe::name_of(task.kind), settings.metric);
}

}  // namespace

TaskData::TaskData(const RunOptions& options)
    : settings_(options.task),
      tokenizer_directory_(tokenizer_for(options)),
      tokenizer_(data::Tokenizer::load(tokenizer_directory_, data::NormalizerRules())),
      training_examples_(
          data::read_training_examples(settings_.train, settings_.kind.value(), settings_.data)),
      training_(training_examples_, tokenizer_, settings_.data.max_length.value(), settings_.data) {
  const describe::Task& task = training_examples_.task;
  require_metric(settings_, task);
  if (!settings_.dev.empty()) {
    dev_examples_.emplace(data::read_examples(settings_.dev, task, settings_.data, data::Labelled::Required));
    held_out_.emplace(*dev_examples_, tokenizer_, settings_.data.max_length.value(), settings_.data);
  }
  require_readable(settings_, task);
}

std::string TaskData::name() const {
  return settings_.dev.empty() ? settings_.train : fmt::format("{} and {}", settings_.train, settings_.dev);
}

std::string TaskData::fingerprint() const {
  const describe::Task& task = training_examples_.task;
  std::string text = fmt::format("{} {:016x} {:016x}", describe::name_of(task.kind), training_.fingerprint(),
                                 held_out_ ? held_out_->fingerprint() : 0);
  for (const std::string& label : task.labels) text += fmt::format(" {}:{}", label.size(), label);
  return io::format_checksum(io::checksum(text));
}

describe::ModelConfig TaskData::fitted(describe::ModelConfig model, const std::string& init) const {
  const std::size_t num_tokens = tokenizer_.vocabulary().size();
  base::require(num_tokens <= static_cast<std::size_t>(model.vocabulary),
                "{} has {} tokens and the model of {} only {}; they do not belong together",
                tokenizer_directory_, num_tokens, init, model.vocabulary);
  model.has_next_sentence = false;
  model.task = training_examples_.task;
  return model;
}

/// As they are, where all are there: they may say more than Plenum reads.
std::vector<std::pair<std::string, std::string>> TaskData::tokenizer_files() const {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}) {
    const std::string path = fmt::format("{}/{}", tokenizer_directory_, name);
    if (io::path_exists(path)) files.emplace_back(name, io::read_file(path));
  }
  if (files.size() == 3) return files;
  constexpr int kUsualPositions = 512;
  return {{"vocab.txt", data::print_vocab_txt(tokenizer_.vocabulary())},
          {"tokenizer.json", data::print_tokenizer_json(tokenizer_)},
          {"tokenizer_config.json", data::print_tokenizer_config(tokenizer_, kUsualPositions)}};
}

std::vector<std::string> TaskData::remarks() const {
  std::vector<std::string> remarks = training_examples_.remarks;
  const auto add = [&](const std::vector<std::string>& more) {
    remarks.insert(remarks.end(), more.begin(), more.end());
  };
  add(training_.remarks());
  if (dev_examples_) add(dev_examples_->remarks);
  if (held_out_) add(held_out_->remarks());
  return remarks;
}

}  // namespace plenum::train
