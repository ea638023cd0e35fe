#pragma once

#include <cstdint>
#include <optional>

#include "plenum/base/thread_pool.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/train/note.h"
#include "plenum/train/run_options.h"
#include "plenum/train/training_data.h"

namespace plenum::train {

/// The settings with the directory of weights that --init (--model of fine-tuning) stands for: of a run its
/// best checkpoint, and what a link to a checkpoint names now, for a run that goes on moves the link.
/// `on_choice` gets a line for it. Leaves all else as it is. Throws UserError for a run without a checkpoint.
ModelSettings settle_source(ModelSettings settings, const Note& on_choice);

/// A text that differs where the weights that --init stands for, or their configuration, have other bytes,
/// wherever they lie; empty where the run begins with random ones. Reads them, but of a checkpoint only what
/// it says of them.
std::string source_identity(const ModelSettings& settings);

/// The model that a run begins with: the preset with the sizes given in its place, or that of --init, with
/// what the data decides of it. Throws UserError for sizes that do not go together, and if the data was not
/// made for such a model.
describe::ModelConfig starting_model(const ModelSettings& settings, const TrainingData& data);

/// The same where no data is known, with the vocabulary that the preset or the directory has.
describe::ModelConfig model_without_data(const ModelSettings& settings);

/// Overwrites the flat weights with what a run begins with: random numbers by `seed`, and over them what
/// --init holds, of a task's head only if it is of that task. Notes what is new and what has no place.
void write_starting_weights(const ModelSettings& settings, const std::optional<describe::Task>& task,
                            const describe::ParameterTable& table, std::uint64_t seed, base::ThreadPool& pool,
                            tensor::TensorView weights_N, const Note& note);

}  // namespace plenum::train
