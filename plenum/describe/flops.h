#pragma once

#include <cstdint>

#include "plenum/describe/model_config.h"

namespace plenum::describe {

/// What a batch asks of a model, padding left out.
struct Work {
  std::int64_t tokens = 0;
  std::int64_t squared_lengths = 0;  ///< sum over sequences of length^2
  std::int64_t masked = 0;
  std::int64_t sequences = 0;

  Work& operator+=(const Work& other);
};

/// Multiplications and additions of a forward pass: T L (8 D^2 + 4 D F) + 4 L D sum(l^2) + M (2 D^2 + 2 D V),
/// and S (2 D^2 + 4 D) for a next-sentence head. Whole layers, as is the custom: the engine does less, behind
/// the last layer's attention only what heads read (at Wikipedia's lengths 2.5 % less of bert-large, 4.7 % of
/// bert-base).
double forward_flops(const ModelConfig& config, const Work& work);

/// Of a training step's forward and backward: three times the forward. What is recomputed does not count.
double training_flops(const ModelConfig& config, const Work& work);

}  // namespace plenum::describe
