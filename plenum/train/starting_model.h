#pragma once

#include <cstdint>

#include "plenum/base/thread_pool.h"
#include "plenum/data/corpus/dataset.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_options.h"

namespace plenum::train {

/// The model that a run begins with: the preset with the sizes given in its place, or that of --init; its
/// objective and, with a preset, its vocabulary are the dataset's. Throws UserError for sizes that do not go
/// together, and if the dataset has other tokens than the model of --init.
describe::ModelConfig starting_model(const ModelSettings& settings, const data::Dataset& dataset);

/// The same where no data is known, with the vocabulary that the preset or the directory has.
describe::ModelConfig model_without_data(const ModelSettings& settings);

/// Overwrites the flat weights with what a run begins with: random numbers by `seed`, and over them what
/// --init holds. Notes what is new and what has no place.
void write_starting_weights(const ModelSettings& settings, const describe::ParameterTable& table,
                            std::uint64_t seed, base::ThreadPool& pool, tensor::TensorView weights_N,
                            const Note& note);

}  // namespace plenum::train
