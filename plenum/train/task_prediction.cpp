#include "plenum/train/task_prediction.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/data/tasks/task_sequences.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {
namespace {

/// A model that answers every example alike has learned nothing, however good its accuracy looks.
void note_sole_label(const FilePredictions& predicted, const Note& note) {
  const data::TaskExamples& examples = predicted.examples;
  if (examples.task.kind != describe::TaskKind::Classification || !examples.is_labelled) return;
  const std::int32_t label = predicted.predictions.front().label;
  const auto has_it = [label](const auto& one) { return one.label == label; };
  if (!std::ranges::all_of(predicted.predictions, has_it) || std::ranges::all_of(examples.examples, has_it))
    return;
  note(
      fmt::format("{}: the model gives all {} examples the label '{}', so it has learned nothing that tells "
                  "them apart; try more epochs, another learning rate or a better --model",
                  examples.path, base::format_count(examples.examples.size()),
                  examples.task.labels[static_cast<std::size_t>(label)]));
}

}  // namespace

FilePredictions predict_file(ModelSource source, const std::string& path, const data::TaskOptions& options,
                             const PredictionPlace& place, const Note& note) {
  base::require(source.config.task.has_value(),
                "{} is not fine-tuned for a task, so it has nothing to predict; see plenum finetune",
                source.directory);
  describe::Task& task = *source.config.task;
  const data::Tokenizer tokenizer = load_tokenizer(source);
  FilePredictions result;
  result.examples = data::read_examples(path, task, options, data::Labelled::Optional);
  task.num_choices = result.examples.task.num_choices;  // transformers' models do not say how many
  const std::int64_t max_length = options.max_length_for(task.kind, source.config.max_positions);
  const data::TaskSequences sequences(result.examples, tokenizer, max_length, options);
  for (const std::string& remark : sequences.remarks()) note(remark);
  data::require_fit(sequences, source.config);
  const data::EvaluationBatches batches(sequences, {});
  const std::unique_ptr<model::BertInference> model =
      load_model(source, batches.capacity(), place.num_threads, place.device, note);
  const auto begin = std::chrono::steady_clock::now();
  data::TaskLogits logits(sequences);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const batch::MicroBatch micro_batch = batches.make(i);
    logits.add(micro_batch, model->logits(micro_batch));
  }
  result.predictions = data::predict(logits, options);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.tokens = batches.work().tokens;
  if (result.examples.is_labelled)
    result.scores = data::score_predictions(result.predictions, result.examples);
  note_sole_label(result, note);
  return result;
}

std::string print_predictions(const FilePredictions& predictions) {
  std::string text;
  for (std::size_t i = 0; i < predictions.predictions.size(); ++i) {
    text += data::print_prediction(predictions.predictions[i], predictions.examples.examples[i],
                                   predictions.examples.task);
    text += '\n';
  }
  return text;
}

data::TaskOptions task_options_of(const ModelSource& source) {
  return source.run.empty() ? data::TaskOptions() : read_run_options(source.run).task.data;
}

}  // namespace plenum::train
