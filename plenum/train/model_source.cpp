#include "plenum/train/model_source.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/batch/capacity.h"
#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/tokenizer/hub_name.h"
#include "plenum/io/directory.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/train/best_evaluation.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;

/// "step 900, the best held-out loss (3.2100)".
std::string remark_on(const FoundCheckpoint& found) {
  const TrainingState& state = found.state;
  const bool is_best = state.best_loss && state.best_step == state.step;
  return is_best ? fmt::format("step {}, the best {}", state.step, best_text(state))
                 : fmt::format("step {}", state.step);
}

bool has_tokenizer(const std::string& directory) {
  return io::path_exists(directory + "/tokenizer.json") || io::path_exists(directory + "/vocab.txt");
}

ModelSource find_in_run(const std::string& run, const CheckpointChoice& choice, base::Progress& progress) {
  const std::optional<FoundCheckpoint> found = CheckpointStore(run, 1).find(choice, progress);
  base::require(found.has_value(), "{} has no checkpoint yet; let plenum train go on until it writes one",
                run);
  const std::string tokenizer = RunPaths(run).tokenizer;
  base::require(has_tokenizer(tokenizer),
                "{0} lacks its tokenizer: no tokenizer.json or vocab.txt is in {1}; plenum train --run {0} "
                "puts it back from the dataset, without training if the run is finished",
                run, tokenizer);
  return {.directory = found->directory,
          .tokenizer = tokenizer,
          .config = found->model,
          .run = run,
          .remark = remark_on(*found)};
}

/// The run whose checkpoint a directory is; empty if it is none, or lies elsewhere.
std::string run_of(const std::string& directory) {
  if (!is_checkpoint(directory)) return {};
  std::error_code error;
  const fs::path checkpoints = fs::weakly_canonical(directory, error).parent_path();
  base::require(!error, "cannot read {}: {}", directory, error.message());
  std::string run = checkpoints.parent_path().string();
  return RunPaths(run).checkpoints == checkpoints && is_run_directory(run) ? run : std::string();
}

data::Tokenizer load_dataset_tokenizer(const data::Dataset& dataset) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) dataset.verify_file(name);
  return data::Tokenizer::load(dataset.directory(), dataset.description().rules);
}

std::string difference_of_tokens(const std::vector<std::string>& dataset,
                                 const std::vector<std::string>& model) {
  const auto [ours, theirs] = std::ranges::mismatch(dataset, model);
  const auto at = ours - dataset.begin();
  if (ours == dataset.end() && theirs == model.end()) return {};
  if (ours == dataset.end() || theirs == model.end()) {
    return fmt::format("the dataset has {} tokens and the model {}, of which the first {} are the same",
                       dataset.size(), model.size(), at);
  }
  return fmt::format("token {} is '{}' in the dataset and '{}' in the model", at, *ours, *theirs);
}

/// The tokens that are found in text as they are written.
std::vector<std::pair<std::string, data::TokenId>> matched_tokens(const data::Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, data::TokenId>> tokens;
  for (const data::AddedToken& token : tokenizer.added_tokens()) tokens.emplace_back(token.content, token.id);
  std::ranges::sort(tokens);
  return tokens;
}

/// Why two tokenizers may read a text differently; empty if they cannot.
std::string first_difference(const data::Tokenizer& dataset, const data::Tokenizer& model) {
  std::string tokens = difference_of_tokens(dataset.vocabulary().tokens(), model.vocabulary().tokens());
  if (!tokens.empty()) return tokens;
  const auto differ = [](std::string_view what, bool ours, bool theirs) {
    const auto word = [](bool value) { return value ? "yes" : "no"; };
    return ours == theirs
               ? std::string()
               : fmt::format("{}: {} in the dataset, {} in the model", what, word(ours), word(theirs));
  };
  const data::NormalizerRules& a = dataset.rules();
  const data::NormalizerRules& b = model.rules();
  for (const std::string& line :
       {differ("lower case", a.lowercase, b.lowercase),
        differ("accents dropped", a.strips_accents(), b.strips_accents()),
        differ("text cleaned", a.clean_text, b.clean_text),
        differ("ideographs set apart", a.handle_chinese_chars, b.handle_chinese_chars)}) {
    if (!line.empty()) return line;
  }
  if (dataset.max_chars_per_word() != model.max_chars_per_word()) {
    return fmt::format("words have at most {} characters in the dataset, {} in the model",
                       dataset.max_chars_per_word(), model.max_chars_per_word());
  }
  return matched_tokens(dataset) == matched_tokens(model) ? "" : "other added tokens";
}

void require_still_there(const ModelSource& source) {
  base::require(io::path_exists(source.directory),
                "{} is gone: a run keeps only its newest checkpoints; begin again from the newest",
                source.directory);
}

}  // namespace

void require_model_directory(const std::string& directory, const std::string& option) {
  base::require(io::path_exists(directory), "there is no directory {}; {}", directory,
                data::hub_hint(directory, option));
}

std::string tokenizer_beside(const std::string& directory) {
  const std::string run = run_of(directory);
  return run.empty() ? directory : RunPaths(run).tokenizer;
}

void require_masked_tokens(const ModelSource& source) {
  if (!source.config.task) return;
  base::fail("{0} is fine-tuned for {1} and predicts no masked tokens; use plenum predict --model {0}",
             source.run.empty() ? source.directory : source.run, describe::name_of(source.config.task->kind));
}

void add_checkpoint_option(base::OptionTable& options, CheckpointChoice& choice) {
  options.add_parsed("checkpoint", choice, "best|last|N",
                     "Which checkpoint of a run: the best by its evaluations, the last, or that of step N",
                     parse_checkpoint_choice, [](const CheckpointChoice& value) { return to_string(value); });
}

ModelSource find_model(const std::string& path, base::Progress& progress, const CheckpointChoice& choice) {
  if (is_run_directory(path)) return find_in_run(path, choice, progress);
  require_model_directory(path, "--model");
  base::require(
      !io::path_exists(RunPaths(path).checkpoints),
      "{0} has no config.toml, which keeps the options of the run; put it back, or write it again by "
      "plenum train --run {0} with all options that the run was begun with",
      path);
  base::require(io::path_exists(path + "/config.json"),
                "{} holds no model: give a Hugging Face directory, a run of plenum train, or a checkpoint",
                path);
  if (is_checkpoint(path)) verify_checkpoint(path);
  return {.directory = path,
          .tokenizer = tokenizer_beside(path),
          .config = model::read_hugging_face_config(path),
          .run = run_of(path)};
}

data::TrainingDataOptions training_data_of(const ModelSource& source) {
  return source.run.empty() ? data::TrainingDataOptions() : read_run_options(source.run).data;
}

void require_same_tokens(const data::Dataset& dataset, const std::string& tokenizer_directory,
                         const describe::ModelConfig& model) {
  const data::Vocabulary known = data::read_vocabulary(dataset);
  if (!has_tokenizer(tokenizer_directory)) {
    base::require(std::cmp_equal(known.size(), model.vocabulary),
                  "{} has {} tokens and the model {}, whose tokenizer is not there to compare them; put its "
                  "vocab.txt into {}",
                  dataset.directory(), known.size(), model.vocabulary, tokenizer_directory);
    return;
  }
  // Rules that the model's files do not state contradict nothing.
  const std::string difference =
      first_difference(load_dataset_tokenizer(dataset),
                       data::Tokenizer::load(tokenizer_directory, dataset.description().rules));
  base::require(difference.empty(),
                "{0} was prepared with another tokenizer than that of {1}; prepare the text with plenum "
                "prepare --tokenizer {1}: {2}",
                dataset.directory(), tokenizer_directory, difference);
}

data::Tokenizer load_tokenizer(const ModelSource& source) {
  data::Tokenizer tokenizer = data::Tokenizer::load(source.tokenizer, data::NormalizerRules());
  const std::size_t num_tokens = tokenizer.vocabulary().size();
  base::require(num_tokens <= static_cast<std::size_t>(source.config.vocabulary),
                "{} has {} tokens and the model {}; they do not belong together", source.tokenizer,
                num_tokens, source.config.vocabulary);
  return tokenizer;
}

std::unique_ptr<model::BertInference> load_model(const ModelSource& source, const batch::Capacity& capacity,
                                                 std::size_t num_threads, tensor::Device device,
                                                 const Note& note) {
  require_still_there(source);
  auto inference = std::make_unique<model::BertInference>(source.config, capacity, num_threads, device);
  const model::ImportReport report = model::read_hugging_face_weights(
      source.directory, inference->parameters(), inference->weights().span<float>());
  base::require(report.new_tensors.empty(), "{} lacks {}; train it first: plenum {} {}", source.directory,
                fmt::join(report.new_tensors, ", "), source.config.task ? "finetune --model" : "train --init",
                source.directory);
  note_unused(source.directory, report, note);
  return inference;
}

std::unique_ptr<model::SentenceEncoder> load_encoder(const ModelSource& source,
                                                     const batch::Capacity& capacity, std::size_t num_threads,
                                                     tensor::Device device) {
  require_still_there(source);
  auto encoder = std::make_unique<model::SentenceEncoder>(source.config, capacity, num_threads, device);
  encoder->write_weights([&](std::span<float> weights_N) {
    model::read_hugging_face_weights(source.directory, encoder->parameters(), weights_N);
  });
  return encoder;
}

void note_unused(const std::string& directory, const model::ImportReport& report, const Note& note) {
  if (report.unused_tensors.empty()) return;
  note(fmt::format("not used from {}: {}", directory, fmt::join(report.unused_tensors, ", ")));
}

}  // namespace plenum::train
