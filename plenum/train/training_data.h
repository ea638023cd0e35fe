#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plenum/data/batches/sequence_source.h"
#include "plenum/data/tasks/task_sequences.h"
#include "plenum/describe/model_config.h"
#include "plenum/train/note.h"
#include "plenum/train/run_options.h"

namespace plenum::train {

/// What a run is trained and evaluated on: a dataset of plenum prepare, or the files of a task. Any number of
/// threads may read one.
class TrainingData {
 public:
  virtual ~TrainingData() = default;

  virtual const data::SequenceSource& training() const = 0;
  /// What is not trained on; null where there is none.
  virtual const data::SequenceSource* held_out() const = 0;

  /// Where it lies, for messages.
  virtual std::string name() const = 0;
  /// How to have data held out, for messages.
  virtual std::string held_out_advice() const = 0;
  /// Of every byte that it was made of. With another one it is another run.
  virtual std::string fingerprint() const = 0;
  /// Of each shard whether this process can read it.
  virtual std::vector<bool> shards_here() const { return {true}; }
  /// Throws UserError if files are not what they were when the data was made, as far as that is quick to
  /// tell; else notes how to compare them.
  virtual void require_unchanged(const Note& note) const { static_cast<void>(note); }

  /// The held-out data where predictions for it can be scored; null where its loss and accuracy say it all.
  virtual const data::TaskSequences* scored() const { return nullptr; }
  /// What was chosen and noticed when it was read, one line each.
  virtual std::vector<std::string> remarks() const { return {}; }

  /// A model with what the data decides of it: its objective and, where it begins with random weights, its
  /// vocabulary. `init` is the directory that its weights are from, or empty. Throws UserError if the data
  /// was not made for such a model.
  virtual describe::ModelConfig fitted(describe::ModelConfig model, const std::string& init) const = 0;
  /// The files of its tokenizer by name, with their bytes: vocab.txt, tokenizer.json and
  /// tokenizer_config.json. Throws UserError if one is not there.
  virtual std::vector<std::pair<std::string, std::string>> tokenizer_files() const = 0;
};

/// That which the options name. Throws UserError for what cannot be read.
std::unique_ptr<const TrainingData> open_training_data(const RunOptions& options);

}  // namespace plenum::train
