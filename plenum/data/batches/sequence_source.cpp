#include "plenum/data/batches/sequence_source.h"

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

void require_fit(const TaskLabels& labels, const SequenceSource& sequences,
                 const describe::ModelConfig& model) {
  base::require(sequences.max_length() <= model.max_positions,
                "{} is read with --max-length {}, but the model has {} positions; give --max-length {}",
                sequences.name(), sequences.max_length(), model.max_positions, model.max_positions);
  base::require(!sequences.has_pairs() || model.num_segments >= 2,
                "{} has pairs of texts, but the model knows one segment; take another model",
                sequences.name());
  base::check(model.task && model.task->kind == labels.task().kind &&
                  describe::num_outputs(*model.task) == describe::num_outputs(labels.task()) &&
                  model.task->num_choices == labels.task().num_choices,
              "a model must be for the task that its data is labelled for: {}", sequences.name());
}

}  // namespace

void require_fit(const SequenceSource& sequences, const describe::ModelConfig& model) {
  base::require(sequences.vocabulary().size <= model.vocabulary,
                "{} has a vocabulary of {} tokens, the model one of {}; prepare the text with the model's "
                "tokenizer, or take another model",
                sequences.name(), sequences.vocabulary().size, model.vocabulary);
  if (const TaskLabels* labels = sequences.task_labels()) return require_fit(*labels, sequences, model);
  base::require(sequences.max_length() <= model.max_positions,
                "{} has sequences of up to {} tokens, the model {} positions; prepare the text with "
                "--max-length {}",
                sequences.name(), sequences.max_length(), model.max_positions, model.max_positions);
  base::require(
      !sequences.has_pairs() || model.num_segments >= 2,
      "{} has pairs of two segments, but the model knows one; prepare the text with --objective mlm",
      sequences.name());
}

}  // namespace plenum::data
