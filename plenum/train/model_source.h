#pragma once

#include <memory>
#include <string>

#include "plenum/base/progress.h"
#include "plenum/data/tokenizer.h"
#include "plenum/describe/model_config.h"
#include "plenum/model/inference.h"

namespace plenum::train {

/// A trained model, wherever it lies.
struct ModelSource {
  std::string directory;  ///< config.json and weights by their Hugging Face names
  std::string tokenizer;  ///< where its tokenizer's files lie
  describe::ModelConfig config;
};

/// The model at `path`: a Hugging Face directory, a run (its newest checkpoint that is whole) or one of its
/// checkpoints. Notes checkpoints that are passed over. Throws UserError if there is none.
ModelSource find_model(const std::string& path, base::Progress& progress);

/// The tokenizer of a model. Throws UserError if it has tokens that the model has no place for.
data::Tokenizer load_tokenizer(const ModelSource& source);

/// The model with its weights, ready to run. Throws UserError if the weights lack a part that the
/// configuration names, such as the head for masked tokens.
std::unique_ptr<model::BertInference> load_model(const ModelSource& source, const model::Capacity& capacity,
                                                 std::size_t num_threads);

}  // namespace plenum::train
