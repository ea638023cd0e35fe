#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/batch/micro_batch.h"
#include "plenum/data/tasks/task_sequences.h"

namespace plenum::data {

/// What a model says of every sequence of a source, gathered from micro-batches in any order and on any
/// ranks: values() of ranks that each add some of the sequences, added up, are those of all.
class TaskLogits {
 public:
  /// Borrows the sequences.
  explicit TaskLogits(const TaskSequences& sequences);

  /// `logits` are those of objective 0 of the micro-batch, num_outputs of the task for each of its rows, in
  /// their order; what lies behind is not read.
  void add(const batch::MicroBatch& micro_batch, std::span<const float> logits);

  std::span<float> values() { return values_; }
  /// Of every labelled row of a sequence.
  std::span<const float> of(std::uint64_t id) const;
  const TaskSequences& sequences() const { return sequences_; }

 private:
  const TaskSequences& sequences_;
  std::vector<std::size_t> first_;  ///< by id; one more at the end
  std::vector<float> values_;
};

/// What is said of an example.
struct Prediction {
  std::int32_t label = 0;            ///< class, or choice
  std::vector<float> probabilities;  ///< of the classes or choices
  double number = 0;                 ///< Regression
  std::vector<std::int32_t> tags;    ///< TokenClassification: class of every word
  std::string answer;                ///< QuestionAnswering: as the context has it; empty: there is none
  AnswerSpan span;                   ///< where it stands
  double score = 0;                  ///< probability of it among the best answers
};

/// A prediction for each example, in the order of the file, from the logits of all its sequences.
///
/// *Answers* are found as BERT's own evaluation does (and Hugging Face's run_qa): of each window the best
/// beginnings and ends are tried with each other, if they lie in the context in this order within the longest
/// answer allowed, and the pair with the greatest sum of logits over all windows wins. Where questions may
/// have no answer, none is what wins if the sum at [CLS], the least over windows, is greater.
std::vector<Prediction> predict(const TaskLogits& logits, const TaskOptions& options);

/// One line of JSON, without its end: the example's id, and what is said of it by names of labels.
std::string print_prediction(const Prediction& prediction, const TaskExample& example,
                             const describe::Task& task);

}  // namespace plenum::data
