#pragma once

#include <utility>

#include "plenum/describe/model_config.h"

namespace plenum::test {

/// The smallest model that has several of everything: for tests of what is read and written, not computed.
inline describe::ModelConfig tiny_model(bool has_next_sentence = true) {
  return {.vocabulary = 11,
          .width = 4,
          .num_layers = 2,
          .num_heads = 2,
          .mlp_width = 6,
          .max_positions = 5,
          .has_next_sentence = has_next_sentence};
}

/// The same, fine-tuned for a task.
inline describe::ModelConfig tiny_model_for(describe::Task task) {
  describe::ModelConfig config = tiny_model(false);
  config.task = std::move(task);
  return config;
}

}  // namespace plenum::test
