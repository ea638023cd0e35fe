#pragma once

#include <memory>
#include <string>

#include "plenum/base/options.h"
#include "plenum/base/progress.h"
#include "plenum/batch/capacity.h"
#include "plenum/data/batches/training_data_options.h"
#include "plenum/data/corpus/dataset.h"
#include "plenum/data/tokenizer/tokenizer.h"
#include "plenum/describe/model_config.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/inference.h"
#include "plenum/model/sentence_encoder.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/note.h"

namespace plenum::train {

/// A trained model, wherever it lies.
struct ModelSource {
  std::string directory;  ///< config.json and weights by their Hugging Face names
  std::string tokenizer;  ///< where its tokenizer's files lie
  describe::ModelConfig config;
  std::string run = {};  ///< that trained it; empty where no run is known
  /// Of a run: which checkpoint was taken, and why, in a few words.
  std::string remark = {};
};

/// The model at `path`: a Hugging Face directory, a run (`choice` says which checkpoint) or one of its
/// checkpoints. Notes checkpoints that are passed over. Throws UserError if there is none.
ModelSource find_model(const std::string& path, base::Progress& progress,
                       const CheckpointChoice& choice = {});

/// Throws UserError if a directory that a model is to be read from is not there: nothing is downloaded, and
/// the line says how a name of Hugging Face's hub becomes a directory.
void require_model_directory(const std::string& directory, const std::string& option);

/// Throws UserError for a model that is fine-tuned for a task, and so has no head for masked tokens.
void require_masked_tokens(const ModelSource& source);

/// Adds --checkpoint to a command's options.
void add_checkpoint_option(base::OptionTable& options, CheckpointChoice& choice);

/// Where the tokenizer of the model in a directory lies: a checkpoint has that of its run, other directories
/// have their own.
std::string tokenizer_beside(const std::string& directory);

/// The options for data that a model was trained with; those that training has by itself where no run is
/// known.
data::TrainingDataOptions training_data_of(const ModelSource& source);

/// Throws UserError unless a dataset was made by the tokenizer of a model, which lies in
/// `tokenizer_directory`: the same tokens (the model may have more embeddings), the same rules for text. What
/// differs is named. A vocabulary that is only the beginning of the other cuts words into other pieces, so it
/// is refused, too. Without a tokenizer there is only the number of tokens to tell by, which must be the
/// model's.
void require_same_tokens(const data::Dataset& dataset, const std::string& tokenizer_directory,
                         const describe::ModelConfig& model);

/// The tokenizer of a model. Throws UserError if it has tokens that the model has no place for.
data::Tokenizer load_tokenizer(const ModelSource& source);

/// The model with its weights, ready to run. Notes heads that it does without. Throws UserError if the
/// weights lack a part that the configuration names, such as the head for masked tokens, or have one that it
/// does not name, such as another layer.
std::unique_ptr<model::BertInference> load_model(
    const ModelSource& source, const batch::Capacity& capacity, std::size_t num_threads,
    tensor::Device device = tensor::Device::Cpu, const Note& note = [](std::string_view) {});

/// Its encoder alone, whatever heads it has or lacks, to make vectors of sequences.
std::unique_ptr<model::SentenceEncoder> load_encoder(const ModelSource& source,
                                                     const batch::Capacity& capacity, std::size_t num_threads,
                                                     tensor::Device device = tensor::Device::Cpu);

/// Notes the tensors of a directory that a model does without, if there are any.
void note_unused(const std::string& directory, const model::ImportReport& report, const Note& note);

}  // namespace plenum::train
