#include "plenum/train/best_evaluation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/train/task_settings.h"

namespace plenum::train {
namespace {

double score_of(const Evaluation& evaluation, const std::string& metric) {
  const auto found = std::ranges::find(evaluation.scores, metric, &data::TaskScore::name);
  base::check(found != evaluation.scores.end(), "an evaluation lacks the metric that decides");
  return found->value;
}

}  // namespace

void count_evaluation(const Evaluation& evaluation, const std::string& metric, TrainingState& state) {
  state.evaluated_step = state.step;
  ++state.worse_in_a_row;
  const bool is_by_loss = metric.empty() || metric == kLossMetric;
  const double score = is_by_loss ? -evaluation.loss() : score_of(evaluation, metric);
  if (!std::isfinite(score) || !std::isfinite(evaluation.loss())) return;
  if (state.best_loss) {
    const double best = is_by_loss ? -*state.best_loss : state.best_score.value().value;
    const bool is_better = score > best || (score == best && evaluation.loss() < *state.best_loss);
    if (!is_better) return;
  }
  state.best_loss = evaluation.loss();
  if (!is_by_loss) state.best_score = data::TaskScore{.name = metric, .value = score};
  state.best_step = state.step;
  state.worse_in_a_row = 0;
}

std::string best_text(const TrainingState& state) {
  if (state.best_score)
    return fmt::format("dev {} ({:.4f})", state.best_score->name, state.best_score->value);
  return fmt::format("held-out loss ({:.4f})", state.best_loss.value());
}

}  // namespace plenum::train
