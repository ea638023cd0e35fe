#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "plenum/train/trainer.h"

namespace plenum::cli {

/// How far a run is, and how long this process took for its part.
std::string progress_text(const train::TrainingResult& result);

/// What a process of a run did and left behind, in a few lines: steps, time, tokens and speed, losses,
/// memory, the files that were written, and what can be done next.
std::string summary_text(const train::TrainingResult& result, const std::string& run);

/// The same as a JSON object with stable keys (docs/training.md), ...
nlohmann::ordered_json summary_object(const train::TrainingResult& result, const std::string& run);
/// ... and that in one line, with its end.
std::string summary_json(const train::TrainingResult& result, const std::string& run);

/// Any object in one line, with its end.
std::string print_line(const nlohmann::ordered_json& object);

}  // namespace plenum::cli
