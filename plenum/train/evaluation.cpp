#include "plenum/train/evaluation.h"

#include <chrono>
#include <cmath>

namespace plenum::train {
namespace {

double mean(double sum, std::int64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

double Evaluation::loss() const {
  double sum = 0;
  for (const ObjectiveResult& result : objectives) sum += result.loss;
  return sum;
}

double Evaluation::pseudo_perplexity() const {
  return std::exp(words().loss);
}

std::optional<Evaluation> evaluate(model::BertInference& model, const data::EvaluationBatches& batches,
                                   base::FunctionRef<bool()> goes_on) {
  const auto begin = std::chrono::steady_clock::now();
  model::EvaluationSums sums;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (!goes_on()) return std::nullopt;
    sums += model.evaluate(batches.make(i));
  }
  Evaluation evaluation;
  const std::vector<describe::Objective> known = model.parameters().model().objectives();
  for (std::size_t i = 0; i < known.size(); ++i) {
    const model::ObjectiveSums& of = sums.objectives[i];
    // Data without labels for an objective says nothing of it.
    if (of.labels == 0 && i > 0) continue;
    evaluation.objectives.push_back({.objective = known[i],
                                     .loss = mean(of.loss, of.labels),
                                     .accuracy = mean(static_cast<double>(of.correct), of.labels),
                                     .labels = of.labels});
  }
  evaluation.sequences = batches.work().sequences;
  evaluation.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return evaluation;
}

}  // namespace plenum::train
