#include "plenum/train/evaluation.h"

#include <chrono>
#include <cmath>
#include <span>

namespace plenum::train {
namespace {

double mean(double sum, std::int64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

/// Gives every process the sums and logits of all batches. Each batch is one process's, and zero in the
/// others, so nothing is rounded.
void share(std::vector<model::EvaluationSums>& sums_of, std::span<float> logits,
           comm::Communicator& processes) {
  constexpr comm::Tag kLogitsTag = 2;
  if (!logits.empty()) processes.start_all_reduce(comm::elements_of(logits), kLogitsTag).wait();
  std::vector<double> values;
  for (const model::EvaluationSums& sums : sums_of) {
    for (const model::ObjectiveSums& of : sums.objectives)
      values.insert(values.end(),
                    {of.loss, static_cast<double>(of.num_losses), static_cast<double>(of.correct)});
  }
  constexpr comm::Tag kTag = 1;
  processes.start_all_reduce(comm::elements_of(std::span<double>(values)), kTag).wait();
  auto next = values.cbegin();
  for (model::EvaluationSums& sums : sums_of) {
    for (model::ObjectiveSums& of : sums.objectives) {
      of.loss = *next++;
      of.num_losses = static_cast<std::int64_t>(*next++);
      of.correct = static_cast<std::int64_t>(*next++);
    }
  }
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
                                   base::FunctionRef<bool()> goes_on, comm::Communicator* processes,
                                   const TaskScoring& scoring) {
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t num_processes = processes == nullptr ? 1 : processes->size();
  const std::size_t index = processes == nullptr ? 0 : processes->index();
  std::vector<model::EvaluationSums> sums_of(batches.size());
  std::optional<data::TaskLogits> logits;
  std::vector<float> of_batch;
  if (scoring.sequences != nullptr) logits.emplace(*scoring.sequences);
  for (std::size_t first = 0; first < batches.size(); first += num_processes) {
    if (!goes_on()) return std::nullopt;
    if (first + index >= batches.size()) continue;
    const batch::MicroBatch micro_batch = batches.make(first + index);
    sums_of[first + index] = model.evaluate(micro_batch, logits ? &of_batch : nullptr);
    if (logits) logits->add(micro_batch, of_batch);
  }
  if (num_processes > 1) share(sums_of, logits ? logits->values() : std::span<float>(), *processes);
  model::EvaluationSums sums;
  for (const model::EvaluationSums& of_one : sums_of) sums += of_one;
  Evaluation evaluation;
  const std::vector<describe::Objective> known = model.parameters().model().objectives();
  for (std::size_t i = 0; i < known.size(); ++i) {
    const model::ObjectiveSums& of = sums.objectives[i];
    // Data without labels for an objective says nothing of it.
    if (of.num_losses == 0 && i > 0) continue;
    evaluation.objectives.push_back({.objective = known[i],
                                     .loss = mean(of.loss, of.num_losses),
                                     .accuracy = mean(static_cast<double>(of.correct), of.num_losses),
                                     .labels = of.num_losses});
  }
  if (logits) {
    evaluation.scores =
        data::score_predictions(data::predict(*logits, *scoring.options), scoring.sequences->examples());
  }
  evaluation.sequences = batches.work().sequences;
  evaluation.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return evaluation;
}

}  // namespace plenum::train
