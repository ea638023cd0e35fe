#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/base/progress.h"
#include "plenum/describe/bert.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/initialise.h"
#include "plenum/train/model_source.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {

/// Directories of models with random weights and the head of a task.
class TaskModel : public TrainingTest {
 protected:
  std::string write_model(const describe::Task& task, const std::string& name = "model") const {
    describe::ModelConfig config{.vocabulary = vocabulary_,
                                 .width = 16,
                                 .num_layers = 2,
                                 .num_heads = 2,
                                 .mlp_width = 32,
                                 .max_positions = 32,
                                 .task = task};
    const describe::ParameterTable table(describe::describe_bert(config));
    std::vector<float> weights(static_cast<std::size_t>(table.num_elements()));
    base::ThreadPool pool(1);
    model::initialise_weights(table, 3, pool, {weights.data(), tensor::Shape{std::ssize(weights)}});
    std::string directory = directory_ / name;
    model::write_hugging_face_directory(
        directory, {.config = config, .table = table, .weights_N = weights, .tokenizer_directory = dataset_},
        io::Replace::Yes);
    return directory;
  }
  static ModelSource find(const std::string& path) {
    base::SilentProgress silent;
    return find_model(path, silent);
  }

  std::int64_t vocabulary_ = static_cast<std::int64_t>(data::Dataset(dataset_).description().vocabulary_size);
};

}  // namespace plenum::train
