#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/describe/task.h"

namespace plenum::describe {

/// The shape of a BERT: what Hugging Face's config.json says of it.
struct ModelConfig {
  std::int64_t vocabulary = 30522;
  std::int64_t width = 768;  ///< D
  std::int64_t num_layers = 12;
  std::int64_t num_heads = 12;
  std::int64_t mlp_width = 3072;  ///< F
  std::int64_t max_positions = 512;
  std::int64_t num_segments = 2;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double initializer_range = 0.02;
  double layer_norm_epsilon = 1e-12;
  std::int64_t pad_id = 0;
  bool has_next_sentence = false;           ///< pooler and next-sentence head are trained
  std::optional<Task> task = std::nullopt;  ///< fine-tuned for it: its head in place of those of pre-training

  std::int64_t head_width() const { return width / num_heads; }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// Throws UserError unless sizes are positive, heads divide the width, rates are 0 or in [1/512, 1) (dropout
/// rounds them to 256ths), and a task has something to choose from.
void require_valid(const ModelConfig& config);

/// bert-tiny, bert-mini, bert-small, bert-base, bert-large.
std::vector<std::string> preset_names();
/// Throws UserError, naming the nearest, for any other name.
ModelConfig preset(std::string_view name);

}  // namespace plenum::describe
