#pragma once

#include <string>

#include "plenum/train/trainer.h"

namespace plenum::cli {

/// What a process of a run did and left behind, in a few lines: steps, time, tokens and speed, losses,
/// memory, the files that were written, and what can be done next.
std::string summary_text(const train::TrainingResult& result, const std::string& run);

/// The same as a JSON object with stable keys (docs/training.md), in one line.
std::string summary_json(const train::TrainingResult& result, const std::string& run);

}  // namespace plenum::cli
