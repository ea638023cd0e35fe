#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/comm/communicator.h"
#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/data/tasks/predictions.h"
#include "plenum/data/tasks/task_scores.h"
#include "plenum/describe/objective.h"
#include "plenum/model/inference.h"

namespace plenum::train {

/// How well a model does what an objective asks for, on text that it was not trained on.
struct ObjectiveResult {
  describe::Objective objective;
  double loss = 0;  ///< mean over labels
  double accuracy = 0;
  std::int64_t labels = 0;
};

struct Evaluation {
  std::vector<ObjectiveResult> objectives;  ///< that both model and data have, the words' first
  std::vector<data::TaskScore> scores;      ///< of a task's predictions
  std::int64_t sequences = 0;
  double seconds = 0;

  const ObjectiveResult& words() const { return objectives.front(); }
  /// The sum over objectives.
  double loss() const;
  /// exp(words().loss): of the fixed mask, not of each token in turn.
  double pseudo_perplexity() const;
};

/// Where predictions are scored, for which data and how.
struct TaskScoring {
  const data::TaskSequences* sequences = nullptr;  ///< those of the batches, all of them; null: nothing is
  const data::TaskOptions* options = nullptr;
};

/// Runs the model over all of the batches. Asks before each whether to go on, and gives nothing if not.
/// Processes that have the same weights may share the batches out: each evaluates one in turn, asks before it
/// whether to go on, as all others do and with the same answer, and gets what one process would, to the bit.
std::optional<Evaluation> evaluate(
    model::BertInference& model, const data::EvaluationBatches& batches,
    base::FunctionRef<bool()> goes_on = [] { return true; }, comm::Communicator* processes = nullptr,
    const TaskScoring& scoring = {});

}  // namespace plenum::train
