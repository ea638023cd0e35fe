#include "plenum/data/tasks/predictions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/data/tasks/best_answers.h"

namespace plenum::data {
namespace {

using describe::TaskKind;

std::size_t outputs_of(const TaskSequences& sequences) {
  return static_cast<std::size_t>(describe::num_outputs(sequences.examples().task));
}

std::vector<float> softmax(std::span<const float> logits) {
  const float greatest = *std::ranges::max_element(logits);
  std::vector<double> powers;
  double sum = 0;
  for (const float logit : logits)
    sum += powers.emplace_back(std::exp(static_cast<double>(logit - greatest)));
  std::vector<float> probabilities;
  for (const double power : powers) probabilities.push_back(static_cast<float>(power / sum));
  return probabilities;
}

/// The first of the greatest.
std::int32_t greatest_index(std::span<const float> values) {
  return static_cast<std::int32_t>(std::ranges::max_element(values) - values.begin());
}

void take_tags(const TaskSequences& sequences, std::uint64_t id, std::span<const float> logits,
               Prediction& prediction) {
  const EncodedSequence& sequence = sequences.sequence(id);
  const std::size_t num_classes = outputs_of(sequences);
  prediction.tags.resize(sequences.examples().examples[sequence.example].words.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(sequence.num_words); ++i) {
    const EncodedWord& word = sequences.encoded().words[sequence.first_word + i];
    prediction.tags[static_cast<std::size_t>(word.word)] =
        greatest_index(logits.subspan(i * num_classes, num_classes));
  }
}

void take_logits(const TaskLogits& logits, std::uint64_t id, Prediction& prediction) {
  const TaskSequences& sequences = logits.sequences();
  const std::span<const float> of_sequence = logits.of(id);
  switch (sequences.examples().task.kind) {
    case TaskKind::Classification:
    case TaskKind::MultipleChoice:
      prediction.probabilities = softmax(of_sequence);
      prediction.label = greatest_index(of_sequence);
      break;
    case TaskKind::Regression:
      prediction.number = of_sequence.front();
      break;
    case TaskKind::TokenClassification:
      take_tags(sequences, id, of_sequence, prediction);
      break;
    case TaskKind::QuestionAnswering:
      break;
  }
}

}  // namespace

TaskLogits::TaskLogits(const TaskSequences& sequences) : sequences_(sequences) {
  std::size_t end = 0;
  for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id) {
    first_.push_back(end);
    end += static_cast<std::size_t>(sequences.task_labels()->num_labels(id)) * outputs_of(sequences);
  }
  first_.push_back(end);
  values_.resize(end);
}

std::span<const float> TaskLogits::of(std::uint64_t id) const {
  return std::span(values_).subspan(first_[id], first_[id + 1] - first_[id]);
}

void TaskLogits::add(const batch::MicroBatch& micro_batch, std::span<const float> logits) {
  const std::size_t num_outputs = outputs_of(sequences_);
  const auto parts = static_cast<std::uint64_t>(sequences_.encoded().parts_per_sequence);
  const std::vector<std::int32_t>& rows = micro_batch.objective(0).rows;
  base::check(logits.size() >= rows.size() * num_outputs, "every row must have its logits: rows={} logits={}",
              rows.size(), logits.size());
  std::size_t row = 0;
  std::size_t place = 0;
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    const auto sample = static_cast<std::uint64_t>(micro_batch.samples[s]);
    const std::uint64_t id = sample / parts;
    if (sample % parts == 0) place = first_[id];
    const std::int32_t end = micro_batch.starts[s] + micro_batch.lengths[s];
    for (; row < rows.size() && rows[row] < end; ++row) {
      base::check(place + num_outputs <= first_[id + 1], "a sequence has more labelled rows than labels: {}",
                  id);
      std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(row * num_outputs), num_outputs,
                  values_.begin() + static_cast<std::ptrdiff_t>(place));
      place += num_outputs;
    }
  }
}

std::vector<Prediction> predict(const TaskLogits& logits, const TaskOptions& options) {
  const TaskSequences& sequences = logits.sequences();
  std::vector<Prediction> predictions(sequences.examples().examples.size());
  if (sequences.examples().task.kind == TaskKind::QuestionAnswering) {
    find_answers(logits, options, predictions);
    return predictions;
  }
  for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id)
    take_logits(logits, id, predictions[sequences.sequence(id).example]);
  return predictions;
}

std::string print_prediction(const Prediction& prediction, const TaskExample& example,
                             const describe::Task& task) {
  nlohmann::ordered_json line;
  line["id"] = example.id;
  const auto name_of_class = [&](std::int32_t label) { return task.labels[static_cast<std::size_t>(label)]; };
  switch (task.kind) {
    case TaskKind::Classification:
      line["label"] = name_of_class(prediction.label);
      for (std::size_t i = 0; i < prediction.probabilities.size(); ++i)
        line["probabilities"][task.labels[i]] = prediction.probabilities[i];
      break;
    case TaskKind::Regression:
      line["score"] = prediction.number;
      break;
    case TaskKind::TokenClassification:
      line["tokens"] = example.words;
      line["tags"] = nlohmann::ordered_json::array();
      for (const std::int32_t tag : prediction.tags) line["tags"].push_back(name_of_class(tag));
      break;
    case TaskKind::QuestionAnswering:
      line["answer"] = prediction.answer;
      if (!prediction.answer.empty())
        line["answer_start"] = characters_before(example.pair, prediction.span.begin);
      line["probability"] = prediction.score;
      break;
    case TaskKind::MultipleChoice:
      line["label"] = prediction.label;
      line["probabilities"] = prediction.probabilities;
      break;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace plenum::data
