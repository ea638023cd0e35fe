#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/data/tasks/predictions.h"
#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tasks/task_options.h"
#include "plenum/data/tasks/task_scores.h"
#include "plenum/tensor/device.h"
#include "plenum/train/model_source.h"
#include "plenum/train/note.h"

namespace plenum::train {

/// Where predictions are computed.
struct PredictionPlace {
  std::size_t num_threads = 1;
  tensor::Device device = tensor::Device::Cpu;
};

/// What a fine-tuned model says of the examples of a file.
struct FilePredictions {
  data::TaskExamples examples;
  std::vector<data::Prediction> predictions;  ///< of each example
  std::vector<data::TaskScore> scores;        ///< none where an example has no label
  std::int64_t tokens = 0;
  double seconds = 0;  ///< that the model took
};

/// Labels the examples of a file, unpadded. Throws UserError if the model is not fine-tuned for a task, and
/// as data::read_examples and load_model do. Notes what is truncated or read in windows, and when all
/// examples get one label although theirs differ.
FilePredictions predict_file(ModelSource source, const std::string& path, const data::TaskOptions& options,
                             const PredictionPlace& place, const Note& note);

/// A line of JSON for each example.
std::string print_predictions(const FilePredictions& predictions);

/// The options for data that a model was fine-tuned with; those that a task has by itself where no run is
/// known.
data::TaskOptions task_options_of(const ModelSource& source);

}  // namespace plenum::train
