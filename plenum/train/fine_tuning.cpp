#include "plenum/train/fine_tuning.h"

#include <cstdint>

#include <fmt/format.h>

#include "plenum/base/machine.h"
#include "plenum/base/progress.h"
#include "plenum/io/file.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/train/model_export.h"
#include "plenum/train/model_source.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {

RunOptions fine_tuning_defaults() {
  RunOptions options;
  options.run.steps = {3, optim::DurationUnit::Epochs};
  options.data.global_batch = "32";
  options.data.order_choice = data::OrderChoice::Sequences;
  options.optimizer.learning_rate.warmup = {0.1, optim::DurationUnit::Run};
  options.evaluation.every = {1, optim::DurationUnit::Epochs};
  options.evaluation.sequences = 0;
  return options;
}

double fine_tuning_learning_rate(const describe::ModelConfig& model) {
  constexpr std::int64_t kSmall = 512;
  constexpr std::int64_t kBase = 768;
  if (model.width <= kSmall) return 5e-5;
  return model.width <= kBase ? 3e-5 : 2e-5;
}

RunOptions settle_task(RunOptions options, const Note& on_choice) {
  if (!options.task.kind) return options;
  const std::string& init = options.model.init;
  // A run that has begun goes on without it.
  if (!is_run_directory(options.run.directory)) require_model_directory(init, "--model");
  std::optional<std::int64_t>& max_length = options.task.data.max_length;
  if (max_length) return options;
  max_length = options.task.data.max_length_for(*options.task.kind,
                                                model::read_hugging_face_config(init).max_positions);
  on_choice(fmt::format("sequences of at most {} tokens (--max-length)", *max_length));
  return options;
}

FineTunedModel finish_fine_tuning(const std::string& run, base::Progress& progress) {
  const RunOptions options = read_run_options(run);
  const Note note = [&](std::string_view line) { progress.note(line); };
  FineTunedModel finished{
      .source = find_model(run, progress), .directory = RunPaths(run).model, .labelled = {}};
  const PredictionPlace place{
      .num_threads = static_cast<std::size_t>(options.run.threads.value_or(base::usable_cores())),
      .device = options.run.device.value_or(tensor::Device::Cpu)};
  export_model(finished.source, finished.directory, io::Replace::Yes, place.num_threads, note);
  const auto label = [&](const char* name, const std::string& path) {
    if (path.empty()) return;
    const FilePredictions predictions = predict_file(finished.source, path, options.task.data, place, note);
    const std::string file = fmt::format("{}/{}-predictions.jsonl", run, name);
    io::write_file(file, print_predictions(predictions));
    finished.labelled.push_back({.name = name,
                                 .path = path,
                                 .file = file,
                                 .num_examples = predictions.predictions.size(),
                                 .scores = predictions.scores});
  };
  label("dev", options.task.dev);
  label("test", options.task.test);
  return finished;
}

}  // namespace plenum::train
