#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/progress.h"
#include "plenum/describe/model_config.h"
#include "plenum/train/checkpoint_tensors.h"
#include "plenum/train/joint_work.h"
#include "plenum/train/processes.h"
#include "plenum/train/training_state.h"

namespace plenum::train {

/// A checkpoint that was passed over because it is torn or altered.
struct RefusedCheckpoint {
  std::string directory;
  std::string reason;  ///< one line that names the file
};

/// A checkpoint whose every byte is as it was written.
struct FoundCheckpoint {
  std::string directory;  ///< also one of Hugging Face weights, without a tokenizer
  TrainingState state;
  describe::ModelConfig model;
  std::vector<RefusedCheckpoint> refused;  ///< newer ones
};

/// Whether a directory is, or was, a checkpoint.
bool is_checkpoint(const std::string& directory);

/// A text that differs between checkpoints of other steps or other bytes, as "step 200, xxh3:...". Reads only
/// what a checkpoint says of its files.
std::string checkpoint_identity(const std::string& directory);

/// Reads what describes a checkpoint that another process has verified: only the sizes of files are looked
/// at. Throws UserError naming what is damaged or cannot be read.
FoundCheckpoint describe_checkpoint(const std::string& directory);

/// Reads what describes a checkpoint and verifies every file. Throws UserError naming what is damaged or
/// cannot be read.
FoundCheckpoint verify_checkpoint(const std::string& directory);

/// Which checkpoint of a run is meant: the best by its evaluations, the newest, or that of a step.
struct CheckpointChoice {
  enum class Kind : std::uint8_t { Best, Last, Step } kind = Kind::Best;
  std::uint64_t step = 0;
};

/// "best", "last" or the number of a step. Throws UserError naming `what` for anything else.
CheckpointChoice parse_checkpoint_choice(std::string_view text, std::string_view what);
std::string to_string(const CheckpointChoice& choice);

/// The checkpoints of a run: `<run>/checkpoints/step-00000200` and so on, each written whole or not at all
/// and checksummed (docs/formats.md). `<run>/checkpoints/best` is a link to the best one.
class CheckpointStore {
 public:
  /// `keep`: how many of the newest to keep, at least 1. Touches nothing yet.
  CheckpointStore(std::string run_directory, std::size_t keep);

  /// Removes what a run that was killed left unfinished. For the run that owns the directory, before it
  /// loads; a reader beside it must not.
  void remove_leftovers() const;

  /// Writes the checkpoint of `state.step`, in place of one of that step, then removes those before the
  /// newest `keep` that are whole, but not the one of `state.best_step`. Throws UserError if that fails (a
  /// full disk above all); the earlier ones are there then. Returns its directory.
  ///
  /// Of several processes all do so at the same time, each with the tensors that it is to write, and all
  /// throw what one throws. The first makes the directory and gives it its name when all have written. Tells
  /// `tell` what this process does, after each part that it wrote again.
  std::string save(
      const TrainingState& state, const describe::ModelConfig& model, const CheckpointTensors& tensors,
      const Processes& processes = {}, TellPhase tell = [](JointPhase) {}) const;

  /// The newest checkpoint that is whole; none if there is no checkpoint at all. Those of which a part is
  /// missing or altered are noted with the reason. Throws UserError, naming each, if all are, and for one
  /// that cannot be judged: of a newer version, or without permission to read it. A run may save meanwhile.
  std::optional<FoundCheckpoint> find_latest(base::Progress& progress) const;

  /// The one that is meant, or the newest with a note where the best one is not there. Throws as find_latest
  /// does, and if there is none of that step.
  std::optional<FoundCheckpoint> find(const CheckpointChoice& choice, base::Progress& progress) const;

  /// The directories of all checkpoints, oldest first, whole or not. Throws UserError if that cannot be told.
  std::vector<std::string> list() const;

 private:
  void remove_old(const TrainingState& newest) const;
  void name_best(std::uint64_t step) const;

  std::string directory_;
  std::size_t keep_;
};

/// Overwrites `tensors` with those of a checkpoint. Throws UserError if it is of a model of other shapes.
void load(const FoundCheckpoint& checkpoint, const CheckpointTensors& tensors);

}  // namespace plenum::train
