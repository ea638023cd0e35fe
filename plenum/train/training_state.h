#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "plenum/data/tasks/task_scores.h"

namespace plenum::train {

/// Values of options by name, such as "width in [model]".
using OptionTexts = std::map<std::string, std::string>;

/// What training has to remember beside its tensors. Where it stands in the data is a function of the step.
struct TrainingState {
  std::uint64_t step = 0;         ///< global batches that were trained on or skipped
  std::uint64_t num_updates = 0;  ///< of the optimizer
  std::uint64_t tokens = 0;       ///< real ones that were trained on
  std::uint64_t sequences = 0;
  std::uint64_t skipped_steps = 0;            ///< for a loss or gradient that was not finite
  std::uint64_t skipped_in_a_row = 0;         ///< up to now
  std::optional<double> best_loss;            ///< of the best evaluation, if there was one
  std::optional<data::TaskScore> best_score;  ///< by which it is the best; not written where that is the loss
  std::uint64_t best_step = 0;
  std::uint64_t worse_in_a_row = 0;  ///< evaluations since the best one
  std::uint64_t evaluated_step = 0;  ///< after which the run was evaluated last
  std::uint64_t seed = 0;
  double attention_cost = 1;  ///< by which work is divided among ranks; not written if it is 1
  std::string fingerprint;    ///< of the dataset: with another one it is another run
  std::string packing_plan;   ///< checksum of the file of --packing-plan; empty, and not written, without one
  OptionTexts options;        ///< of the run, that may not change; earlier versions wrote none

  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

nlohmann::json to_json_object(const TrainingState& state);
/// Throws UserError, naming `source`, for a key that is missing or of the wrong type.
TrainingState parse_training_state(const nlohmann::json& object, const std::string& source);

}  // namespace plenum::train
