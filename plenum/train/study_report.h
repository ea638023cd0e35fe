#pragma once

#include <string>

#include "plenum/train/study.h"

namespace plenum::train {

/// The report as Markdown: summary, every configuration, what choosing by prediction costs, and what the
/// configurations answer (study_answers).
std::string study_markdown(const Study& study);

/// All of it as JSON, steps included.
std::string study_json(const Study& study);

// Plots as SVG.
std::string step_time_plot(const Study& study);  ///< of each configuration, predicted over measured
std::string memory_plot(const Study& study);     ///< likewise
/// Of each step of unpadded runs, as shares of the configuration's mean step.
std::string single_steps_plot(const Study& study);

}  // namespace plenum::train
