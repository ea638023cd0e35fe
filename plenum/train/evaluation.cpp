#include "plenum/train/evaluation.h"

#include <chrono>
#include <cmath>

namespace plenum::train {
namespace {

double mean(double sum, std::int64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

double Evaluation::pseudo_perplexity() const {
  return std::exp(masked_loss);
}

std::optional<Evaluation> evaluate(model::BertInference& model, const data::EvaluationBatches& batches,
                                   const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  model::EvaluationSums sums;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (stop.stop_requested()) return std::nullopt;
    sums += model.evaluate(batches.make(i));
  }
  return Evaluation{
      .masked_loss = mean(sums.masked_loss, sums.masked),
      .masked_accuracy = mean(static_cast<double>(sums.masked_correct), sums.masked),
      .next_sentence_loss = mean(sums.next_sentence_loss, sums.sequences),
      .next_sentence_accuracy = mean(static_cast<double>(sums.next_sentence_correct), sums.sequences),
      .sequences = batches.work().sequences,
      .masked = sums.masked,
      .has_next_sentence = sums.sequences > 0,
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

}  // namespace plenum::train
