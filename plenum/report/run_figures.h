#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/report/run_record.h"

namespace plenum::report {

/// What a run comes to, in numbers. Nothing where it is not known.
struct RunFigures {
  double num_steps = 0;     ///< that are done
  double tokens = 0;        ///< real ones, trained on
  double step_seconds = 0;  ///< of all steps together
  double wall_seconds = 0;  ///< in which processes trained
  double evaluation_seconds = 0;
  std::size_t num_skipped = 0;
  std::size_t num_resumed = 0;
  std::optional<double> loss;  ///< mean over the last steps
  std::optional<double> held_out_loss;
  std::optional<double> best_loss;  ///< on held-out text, at the best evaluation
  double best_step = 0;
  std::optional<double> accuracy;           ///< there
  std::string accuracy_name;                ///< of what
  bool is_best_by_score = false;            ///< it is the best by that, and not by its loss
  std::optional<double> tokens_per_second;  ///< real ones, in the last steps
  std::optional<double> mean_tokens_per_second;
  std::optional<double> peak_share;       ///< useful FLOP/s over what products reach, in the last steps
  std::optional<double> padding;          ///< share of computed rows
  std::optional<double> padding_avoided;  ///< share of the rows of a padded batch that were not computed
  std::optional<double> used_bytes;       ///< of the device's memory, at most
  double num_parameters = 0;
};

RunFigures figures_of(const RunRecord& run);

/// A number of an evaluation that tells how often a model is right: a share, not a loss and no count.
bool is_score(const std::string& name);
/// A loss: "loss" and names that end so.
bool is_loss(const std::string& name);
/// As the page writes it: "mlm accuracy" for "mlm_accuracy".
std::string spoken(std::string name);

/// FLOP/s of large matrix products on the machine that did a step, for every step; not a number where it is
/// not known.
std::vector<double> product_flops_of_steps(const RunRecord& run);

/// Where the run stands, in a word: "training", "finished", "stopped", "not training".
std::string state_of(const RunRecord& run);

}  // namespace plenum::report
