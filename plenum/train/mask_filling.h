#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/batch/micro_batch.h"
#include "plenum/data/tokenizer/tokenizer.h"
#include "plenum/train/model_source.h"

namespace plenum::train {

/// A token that may stand in place of a [MASK].
struct Guess {
  std::string token;
  double probability = 0;
};

/// What a model puts into the [MASK]s of texts.
class MaskFilling {
 public:
  /// Reads the tokenizer, then cuts the texts into tokens. Throws UserError, naming the text, for one without
  /// [MASK] or longer than the model can take, and as load_model does.
  MaskFilling(
      const ModelSource& source, const std::vector<std::string>& texts, std::size_t num_threads,
      tensor::Device device = tensor::Device::Cpu, const Note& note = [](std::string_view) {});

  /// The `top` best tokens for each [MASK] of a text, in order, the best first. Special tokens are no
  /// guesses, but have their share of the probability.
  std::vector<std::vector<Guess>> guesses(std::size_t text_index, std::size_t top);

 private:
  std::vector<Guess> best(std::span<const float> logits_V, std::size_t top) const;

  data::Tokenizer tokenizer_;
  std::vector<batch::MicroBatch> texts_;
  std::unique_ptr<model::BertInference> model_;
};

}  // namespace plenum::train
