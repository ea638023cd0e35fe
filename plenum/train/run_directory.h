#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plenum/io/lock_file.h"
#include "plenum/train/note.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_options.h"
#include "plenum/train/training_data.h"
#include "plenum/train/training_state.h"

namespace plenum::train {

/// The values of all options by name.
OptionTexts option_texts(RunOptions options);

/// Where things lie in the directory of a run.
struct RunPaths {
  explicit RunPaths(const std::string& directory);

  std::string config;       ///< all options, as --print-config prints them, for the next process
  std::string lock;         ///< held by the process that trains
  std::string metrics;      ///< a JSON object for each step
  std::string evaluations;  ///< a JSON object for each evaluation
  std::string events;       ///< a JSON object for each thing that happened beside steps
  std::string step;         ///< a step as it was predicted and as it was measured
  std::string tensorboard;  ///< a directory
  std::string tokenizer;    ///< a directory: that of the data
  std::string tuning;       ///< which algorithms were found the fastest on the GPU
  std::string schedule;     ///< what ranks do, where that was measured or given
  std::string checkpoints;  ///< a directory
  std::string model;        ///< a directory: the best checkpoint of a fine-tuned model, for transformers
  std::string logs;         ///< a directory: a file for each process but the first
};

/// Whether a directory is that of a run.
bool is_run_directory(const std::string& directory);

/// Throws UserError, with the way to mend it, for a run that lost its config.toml, unless options say what it
/// trains: those are compared with its newest checkpoint, and kept again.
void require_known_options(const RunOptions& options);

/// The options that a run has kept. Throws UserError naming file and line of what cannot be read.
RunOptions read_run_options(const std::string& directory);

/// The directory of a run, made or taken up again, and locked from then on while this exists.
///
/// A run keeps its configuration: whatever changes what is computed stays as it was. What may change between
/// one process and the next is where and on how much hardware it runs, where its input lies, what it writes,
/// and `steps`: a run can go on longer, with the learning rates of the new length from there on.
class RunDirectory {
 public:
  /// Borrows the data. Takes up what is there, without what a killed process left of unfinished
  /// checkpoints; makes nothing. Throws UserError if another process trains this run, if the directory holds
  /// something else, or if it has checkpoints of another configuration: the first key that differs is named
  /// with both values.
  RunDirectory(const RunOptions& options, const TrainingData& data);

  const RunPaths& paths() const { return paths_; }
  /// Those that may not change, for the next process to compare with.
  OptionTexts kept_options() const;
  /// Throws UserError for the first of `earlier` that is another one now. Those that only one version of the
  /// program knows do not count.
  void require_same(const OptionTexts& earlier) const;
  /// A line for each thing that alters what is computed, compared with the process before.
  const std::vector<std::string>& changes() const { return changes_; }
  /// Whether the configuration is gone of a run that has checkpoints.
  bool lost_config() const { return !is_new_ && !has_config_; }
  /// A line for each part that was gone and is there again.
  const std::vector<std::string>& mended() const { return mended_; }
  /// Makes what a new run has from the start, and puts back a tokenizer that is gone, once nothing is left
  /// that could refuse it. Throws UserError if another process did so since this looked.
  void make();
  /// Keeps the configuration for the next process, once nothing is left that could refuse it. How many ranks
  /// there are is kept of a process on its own: others are as many as are started.
  void write_config(const Processes& processes) const;

 private:
  std::vector<std::string> kept_names() const;
  void lock();
  void take_up();
  void write_tokenizer() const;

  const TrainingData& data_;
  RunOptions options_;
  std::string directory_;
  RunPaths paths_;
  bool is_new_ = false;      ///< has no checkpoint
  bool has_config_ = false;  ///< when this was made
  std::vector<std::string> changes_;
  std::vector<std::string> mended_;
  std::optional<io::LockFile> lock_;  ///< taken once the directory is there
};

}  // namespace plenum::train
