#include "plenum/describe/flops.h"

namespace plenum::describe {

Work& Work::operator+=(const Work& other) {
  tokens += other.tokens;
  squared_lengths += other.squared_lengths;
  masked += other.masked;
  sequences += other.sequences;
  return *this;
}

double forward_flops(const ModelConfig& config, const Work& work) {
  const auto layers = static_cast<double>(config.num_layers);
  const auto width = static_cast<double>(config.width);
  const auto mlp_width = static_cast<double>(config.mlp_width);
  const auto vocabulary = static_cast<double>(config.vocabulary);
  const double linear =
      static_cast<double>(work.tokens) * layers * (8 * width * width + 4 * width * mlp_width);
  const double attention = 4 * layers * width * static_cast<double>(work.squared_lengths);
  const double masked = static_cast<double>(work.masked) * (2 * width * width + 2 * width * vocabulary);
  const double next_sentence =
      config.has_next_sentence ? static_cast<double>(work.sequences) * (2 * width * width + 4 * width) : 0;
  return linear + attention + masked + next_sentence;
}

double training_flops(const ModelConfig& config, const Work& work) {
  return 3 * forward_flops(config, work);
}

}  // namespace plenum::describe
