#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/describe/parameter_table.h"

namespace plenum::test {

/// A small model whose heads are as wide as attention on a GPU wants them, for sequences that are longer than
/// a tile of it.
inline describe::ModelConfig wide_heads() {
  return {.vocabulary = 97,
          .width = 128,
          .num_layers = 2,
          .num_heads = 2,
          .mlp_width = 256,
          .max_positions = 200,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1,
          .has_next_sentence = true};
}

/// Weights, biases included, that make every part of a model matter. Smaller in wider models, so that sums
/// over the width keep their size.
inline std::vector<float> random_weights(const describe::ParameterTable& table, std::int64_t width) {
  const base::RandomFunction random(3, base::Purpose::Initialisation);
  const double range = 0.3 * std::sqrt(32.0 / static_cast<double>(width));
  std::vector<float> weights(static_cast<std::size_t>(table.num_elements()));
  for (const describe::Parameter& parameter : table.parameters()) {
    const bool is_gamma = parameter.kind == describe::ParameterKind::NormWeight;
    for (std::int64_t i = parameter.begin; i < parameter.end(); ++i) {
      const double value = range * (2 * base::to_unit_interval(random(static_cast<std::uint64_t>(i))) - 1);
      weights[static_cast<std::size_t>(i)] = static_cast<float>(is_gamma ? 1 + value : value);
    }
  }
  return weights;
}

}  // namespace plenum::test
