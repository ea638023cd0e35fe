#include "plenum/train/starting_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/progress.h"
#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/initialise.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/model_source.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {
namespace {

/// Throws UserError for the name of a model that is trained already, such as bert-base-uncased.
void require_no_trained_model(const std::string& preset) {
  const auto is_beginning = [&](const std::string& known) {
    return preset.starts_with(known) && preset.size() > known.size();
  };
  const bool is_meant =
      preset.find('/') != std::string::npos || std::ranges::any_of(describe::preset_names(), is_beginning);
  base::require(
      !is_meant,
      "--model names the size of a model that begins with random weights, one of {}: '{}'; to begin "
      "with trained weights, give their directory: --init DIR",
      fmt::join(describe::preset_names(), ", "), preset);
}

describe::ModelConfig altered_preset(const ModelSettings& settings) {
  require_no_trained_model(settings.preset);
  describe::ModelConfig model = describe::preset(settings.preset);
  model.num_layers = settings.layers.value_or(model.num_layers);
  if (settings.width) model.mlp_width = 4 * *settings.width;
  model.width = settings.width.value_or(model.width);
  model.num_heads = settings.heads.value_or(model.num_heads);
  model.mlp_width = settings.mlp_width.value_or(model.mlp_width);
  model.max_positions = settings.max_positions.value_or(model.max_positions);
  return model;
}

/// But for what the data says.
describe::ModelConfig model_of(const ModelSettings& settings) {
  if (!settings.init.empty()) require_model_directory(settings.init, "--init");
  describe::ModelConfig model =
      settings.init.empty() ? altered_preset(settings) : model::read_hugging_face_config(settings.init);
  model.task.reset();  // the data decides what it is trained for
  model.hidden_dropout = settings.hidden_dropout.value_or(model.hidden_dropout);
  model.attention_dropout = settings.attention_dropout.value_or(model.attention_dropout);
  return model;
}

/// The checkpoint that a link names; empty if the path is no such link.
std::string linked_checkpoint(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path bare = path.ends_with('/') ? fs::path(path).parent_path() : fs::path(path);
  std::error_code error;
  if (!fs::is_symlink(bare, error) || !is_checkpoint(path)) return {};
  const fs::path named = fs::read_symlink(bare, error);
  return error ? std::string() : (bare.parent_path() / named).lexically_normal().string();
}

}  // namespace

ModelSettings settle_source(ModelSettings settings, const Note& on_choice) {
  std::string& init = settings.init;
  if (is_run_directory(init)) {
    base::SilentProgress silent;
    const ModelSource source = find_model(init, silent);
    on_choice(fmt::format("begins with {} ({})", source.directory, source.remark));
    init = source.directory;
  } else if (const std::string linked = linked_checkpoint(init); !linked.empty()) {
    on_choice(fmt::format("begins with {}", linked));
    init = linked;
  }
  return settings;
}

std::string source_identity(const ModelSettings& settings) {
  const std::string& init = settings.init;
  if (init.empty()) return {};
  if (is_checkpoint(init)) return checkpoint_identity(init);
  io::Checksum checksum;
  for (const std::string& name : io::names_in(init)) {
    if (name != "config.json" && !name.ends_with(".safetensors")) continue;
    checksum.update(fmt::format("{} {} ", name, io::file_checksum(init + "/" + name)));
  }
  return io::format_checksum(checksum.value());
}

describe::ModelConfig model_without_data(const ModelSettings& settings) {
  const describe::ModelConfig model = model_of(settings);
  describe::require_valid(model);
  return model;
}

describe::ModelConfig starting_model(const ModelSettings& settings, const TrainingData& data) {
  const describe::ModelConfig model = data.fitted(model_of(settings), settings.init);
  describe::require_valid(model);
  return model;
}

void write_starting_weights(const ModelSettings& settings, const std::optional<describe::Task>& task,
                            const describe::ParameterTable& table, std::uint64_t seed, base::ThreadPool& pool,
                            tensor::TensorView weights_N, const Note& note) {
  model::initialise_weights(table, seed, pool, weights_N);
  if (settings.init.empty()) return;
  if (is_checkpoint(settings.init)) verify_checkpoint(settings.init);
  const std::span<float> weights = weights_N.span<float>();
  const model::ImportReport report = task ? model::read_weights_for_task(settings.init, *task, table, weights)
                                          : model::read_hugging_face_weights(settings.init, table, weights);
  if (!report.other_head.empty())
    note(fmt::format("the head of {} is not used: {}", settings.init, report.other_head));
  if (!report.new_tensors.empty()) {
    note(fmt::format("not in {}, so initialized randomly: {}", settings.init,
                     fmt::join(report.new_tensors, ", ")));
  }
  note_unused(settings.init, report, note);
}

}  // namespace plenum::train
