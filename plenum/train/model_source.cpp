#include "plenum/train/model_source.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/io/directory.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;

ModelSource find_in_run(const std::string& run, base::Progress& progress) {
  const std::optional<FoundCheckpoint> found = CheckpointStore(run, 1).find_latest(progress);
  base::require(found.has_value(), "{} has no checkpoint yet; let plenum train go on until it writes one",
                run);
  return {.directory = found->directory, .tokenizer = RunPaths(run).tokenizer, .config = found->model};
}

/// A checkpoint has the tokenizer of its run; other directories have their own.
std::string tokenizer_beside(const std::string& directory) {
  std::error_code error;
  const fs::path run = fs::weakly_canonical(directory, error).parent_path().parent_path();
  base::require(!error, "cannot read {}: {}", directory, error.message());
  return is_run_directory(run.string()) ? RunPaths(run.string()).tokenizer : directory;
}

}  // namespace

ModelSource find_model(const std::string& path, base::Progress& progress) {
  if (is_run_directory(path)) return find_in_run(path, progress);
  base::require(io::path_exists(path + "/config.json"),
                "{} holds no model: give a Hugging Face directory, a run of plenum train, or a checkpoint",
                path);
  if (is_checkpoint(path)) verify_checkpoint(path);
  return {.directory = path,
          .tokenizer = tokenizer_beside(path),
          .config = model::read_hugging_face_config(path)};
}

data::Tokenizer load_tokenizer(const ModelSource& source) {
  data::Tokenizer tokenizer = data::Tokenizer::load(source.tokenizer, data::NormalizerRules());
  const std::size_t num_tokens = tokenizer.vocabulary().size();
  base::require(num_tokens <= static_cast<std::size_t>(source.config.vocabulary),
                "{} has {} tokens and the model {}; they do not belong together", source.tokenizer,
                num_tokens, source.config.vocabulary);
  return tokenizer;
}

std::unique_ptr<model::BertInference> load_model(const ModelSource& source, const model::Capacity& capacity,
                                                 std::size_t num_threads) {
  base::require(io::path_exists(source.directory),
                "{} is gone: a run keeps only its newest checkpoints; begin again from the newest",
                source.directory);
  auto inference = std::make_unique<model::BertInference>(source.config, capacity, num_threads);
  const model::ImportReport report = model::read_hugging_face_weights(
      source.directory, inference->parameters(), inference->weights().span<float>());
  base::require(report.new_tensors.empty(), "{} lacks {}; train it first: plenum train --init {}",
                source.directory, fmt::join(report.new_tensors, ", "), source.directory);
  return inference;
}

}  // namespace plenum::train
