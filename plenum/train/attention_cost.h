#pragma once

#include <cstdint>
#include <optional>

#include "plenum/describe/model_config.h"

namespace plenum::train {

/// What training spends on a model's sequences on one core of this machine, in seconds: linear in tokens,
/// quadratic in lengths.
struct SequenceCost {
  double of_token = 0;
  double of_pair = 0;  ///< of a query and a key

  /// How much longer an operation of attention takes than one of the rest.
  double attention_cost(const describe::ModelConfig& model) const;
};

/// Measures matrix products, and forward and backward of one layer's attention over as many tokens in long
/// and in short sequences; a fifth of a second for BERT-base.
SequenceCost measure_sequence_cost(const describe::ModelConfig& model, std::int64_t max_length);

/// The power of two next to a measured cost, so that two measurements give the same.
double round_attention_cost(double measured);

}  // namespace plenum::train
