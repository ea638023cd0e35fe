#include "plenum/describe/flops.h"

#include "plenum/batch/work.h"

namespace plenum::describe {

double forward_flops(const ModelConfig& config, const batch::Work& work) {
  const auto layers = static_cast<double>(config.num_layers);
  const auto width = static_cast<double>(config.width);
  const auto mlp_width = static_cast<double>(config.mlp_width);
  const auto vocabulary = static_cast<double>(config.vocabulary);
  const auto tokens = static_cast<double>(work.tokens);
  const auto read = static_cast<double>(work.masked + (config.has_next_sentence ? work.sequences : 0));
  const double qkv = 6 * width * width;
  const double behind_attention = 2 * width * width + 4 * width * mlp_width;
  const double linear = tokens * layers * qkv + (tokens * (layers - 1) + read) * behind_attention;
  const double attention = 4 * layers * width * static_cast<double>(work.squared_lengths);
  const double masked = static_cast<double>(work.masked) * (2 * width * width + 2 * width * vocabulary);
  const double next_sentence =
      config.has_next_sentence ? static_cast<double>(work.sequences) * (2 * width * width + 4 * width) : 0;
  return linear + attention + masked + next_sentence;
}

double training_flops(const ModelConfig& config, const batch::Work& work) {
  return 3 * forward_flops(config, work);
}

}  // namespace plenum::describe
