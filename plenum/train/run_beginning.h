#pragma once

#include <nlohmann/json.hpp>

#include "plenum/train/run.h"
#include "plenum/train/training_observer.h"

namespace plenum::train {

/// What holds for a run from here on, as its events keep it for whoever looks at it later: program, machine,
/// model, lengths, packs, planned memory and how evenly ranks share the work. docs/formats.md has the keys.
nlohmann::ordered_json describe_beginning(const Run& run, const RunSummary& summary);

}  // namespace plenum::train
