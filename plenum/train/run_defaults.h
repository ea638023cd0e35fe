#pragma once

#include <cstdint>

#include "plenum/describe/model_config.h"
#include "plenum/optim/duration.h"
#include "plenum/optim/optimizer.h"
#include "plenum/train/note.h"
#include "plenum/train/run_options.h"
#include "plenum/train/training_data.h"

namespace plenum::train {

// Defaults that depend on the model, the data, the length of the run or the machine, found by the sweep in
// bench/results/defaults-202611.md. They are settled once, when a run begins; the run keeps them.

/// The learning rate of a model that is trained from scratch with AdamW, or with Muon or SOAP, which take
/// a higher one.
double default_learning_rate(const describe::ModelConfig& model,
                             optim::OptimizerKind optimizer = optim::OptimizerKind::AdamW);

/// The tokens of a batch for a run so long on data of so many tokens and sequences an epoch.
std::uint64_t default_batch_tokens(const optim::Duration& length, std::uint64_t epoch_tokens,
                                   std::uint64_t epoch_sequences);

/// The GPU where one can be used for such a model, else the CPU; several ranks of one process are on the CPU.
/// Notes a GPU that stays unused, with the reason.
tensor::Device settle_device(const DeviceChoice& choice, const describe::ModelConfig& model,
                             std::int64_t ranks, const Note& note);

/// The options with nothing left to be chosen, for a process with so many ranks. `on_choice` gets a line for
/// every default that was chosen here, with the option that changes it; `note` what the user may not expect.
RunOptions settle_defaults(RunOptions options, const TrainingData& data, std::int64_t ranks_here,
                           const Note& on_choice, const Note& note);

}  // namespace plenum::train
