#include "plenum/describe/model_config.h"

#include <array>

#include "plenum/base/check.h"
#include "plenum/base/options.h"

namespace plenum::describe {
namespace {

struct Preset {
  std::string_view name;
  std::int64_t width;
  std::int64_t num_layers;
  std::int64_t num_heads;
};
constexpr std::array<Preset, 5> kPresets = {{
    {"bert-tiny", 128, 2, 2},
    {"bert-mini", 256, 4, 4},
    {"bert-small", 512, 4, 8},
    {"bert-base", 768, 12, 12},
    {"bert-large", 1024, 24, 16},
}};

// Dropout numbers its sites by layer in 14 bits, and heads in 12.
constexpr std::int64_t kMaxLayers = 1 << 14;
constexpr std::int64_t kMaxHeads = 1 << 12;

void require_size(std::string_view what, std::int64_t size, std::int64_t maximum) {
  base::require(size >= 1 && size <= maximum, "{} must be from 1 to {}: {}", what, maximum, size);
}

// Dropout rounds rates to 256ths, so that a smaller one than half of that would silently be none.
void require_rate(std::string_view what, double rate) {
  base::require(rate == 0 || (rate >= 1.0 / 512 && rate < 1), "{} must be 0 or in [1/512, 1): {}", what,
                rate);
}

void require_valid_task(const Task& task) {
  const bool has_classes =
      task.kind == TaskKind::Classification || task.kind == TaskKind::TokenClassification;
  base::require(!has_classes || task.labels.size() >= 2, "{} needs at least 2 classes: {}",
                name_of(task.kind), task.labels.size());
  base::require(task.num_choices == 0 || task.num_choices >= 2,
                "an example of {} needs at least 2 choices: {}", name_of(TaskKind::MultipleChoice),
                task.num_choices);
  if (task.dropout) require_rate("dropout of the task's head", *task.dropout);
}

}  // namespace

void require_valid(const ModelConfig& config) {
  constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;
  require_size("the vocabulary", config.vocabulary, kMaxSize);
  require_size("the width", config.width, kMaxSize);
  require_size("the number of layers", config.num_layers, kMaxLayers);
  require_size("the number of heads", config.num_heads, kMaxHeads);
  require_size("the MLP width", config.mlp_width, kMaxSize);
  require_size("the number of positions", config.max_positions, std::int64_t{1} << 20);
  require_size("the number of segments", config.num_segments, kMaxSize);
  base::require(config.width % config.num_heads == 0, "width {} is not a multiple of {} heads", config.width,
                config.num_heads);
  require_rate("hidden dropout", config.hidden_dropout);
  require_rate("attention dropout", config.attention_dropout);
  base::require(config.initializer_range > 0, "the initializer range must be positive: {}",
                config.initializer_range);
  base::require(config.layer_norm_epsilon > 0, "the epsilon of layer norm must be positive: {}",
                config.layer_norm_epsilon);
  base::require(config.pad_id >= 0 && config.pad_id < config.vocabulary,
                "the id of padding must lie in the vocabulary of {}: {}", config.vocabulary, config.pad_id);
  if (config.task) require_valid_task(*config.task);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

ModelConfig preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    return {.width = preset.width,
            .num_layers = preset.num_layers,
            .num_heads = preset.num_heads,
            .mlp_width = 4 * preset.width};
  }
  base::fail_choice("model", std::string(name), preset_names());
}

}  // namespace plenum::describe
