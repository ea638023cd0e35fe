#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/model/inference.h"

namespace plenum::train {

/// How well a model predicts masked tokens that it was not trained on.
struct Evaluation {
  double masked_loss = 0;  ///< mean cross-entropy of a masked token
  double masked_accuracy = 0;
  double next_sentence_loss = 0;  ///< mean of a sequence; 0 where model or data have no such objective
  double next_sentence_accuracy = 0;
  std::int64_t sequences = 0;
  std::int64_t masked = 0;
  bool has_next_sentence = false;
  double seconds = 0;

  double loss() const { return masked_loss + next_sentence_loss; }
  /// exp(masked_loss): of the fixed mask, not of each token in turn.
  double pseudo_perplexity() const;
};

/// Runs the model over all of the batches; gives nothing if a stop is asked for meanwhile.
std::optional<Evaluation> evaluate(model::BertInference& model, const data::EvaluationBatches& batches,
                                   const std::stop_token& stop = {});

}  // namespace plenum::train
