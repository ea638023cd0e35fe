#pragma once

#include <cstdint>
#include <string>

#include "plenum/batch/group_label.h"
#include "plenum/describe/task.h"

namespace plenum::describe {

/// Which rows of the last layer's output an objective reads. Each that it reads has one label.
enum class RowsRead : std::uint8_t {
  Chosen,           ///< tokens that the data chooses, such as masked ones
  FirstOfSequence,  ///< the first token of every sequence
  All,              ///< every token
};

/// How a row's logits and its label become a loss.
enum class LossKind : std::uint8_t {
  WordCrossEntropy,   ///< the label is a token of the vocabulary
  ClassCrossEntropy,  ///< the label is one of a few classes
  SquaredError,       ///< one logit; the label is a number: the bits of a float
  GroupCrossEntropy,  ///< the softmax of a logit is over the rows of a group; the label is a GroupLabel
};

using batch::GroupLabel;

/// What a model is trained to predict. Its loss is the mean over its labels, or over groups of them, in the
/// global batch, whatever the micro-batches and ranks: their number is what normalises it. The model's loss
/// is the sum over objectives.
struct Objective {
  std::string name;       ///< before the names of its metrics: mlm_loss, mlm_accuracy
  std::string title;      ///< as people read it
  std::string labelled;   ///< what has its labels, in the plural
  std::string count_key;  ///< of their number among metrics; empty: they are as many as the sequences
  RowsRead rows = RowsRead::Chosen;
  LossKind loss = LossKind::WordCrossEntropy;
  std::int64_t num_classes = 0;  ///< logits of a row; labels of classes are below it
  /// Sequences that a group of GroupCrossEntropy is of, such as the choices of an example; 0: not known.
  std::int64_t group_sequences = 1;

  friend bool operator==(const Objective&, const Objective&) = default;
};

/// The token that stood where a masked one stands (Devlin et al., 2019).
Objective masked_token_objective(std::int64_t vocabulary);
/// Whether the second segment follows the first (0) or comes from elsewhere (1).
Objective next_sentence_objective();
/// Of a task, named "task". Answers are spans of tokens by column 0, where they begin, and 1, where they end;
/// choices have one column.
Objective task_objective(const Task& task);

/// How many losses an objective has in a batch: labels, or groups of them. `labels` is of the objective.
/// Throws InternalError where nobody knows how many sequences a group is of.
std::int64_t num_losses(const Objective& objective, std::int64_t labels, std::int64_t sequences);

}  // namespace plenum::describe
