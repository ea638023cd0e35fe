#pragma once

#include <cstdint>
#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::memory {

/// The matrices of a layer where the holders of a stage divide Muon's or SOAP's work on them, each as
/// matrices_of_layer() has it.
struct DividedLayer {
  std::vector<workspace::FlatMatrices> own;     ///< whose directions the rank makes
  std::vector<std::uint16_t> own_maps;          ///< which of the layer's maps these are
  std::vector<workspace::FlatMatrices> others;  ///< of other holders
};

/// By the model's layers, empty where the rank does not hold one; none at all where the schedule leaves the
/// work to the update. `table` is of the rank's layers.
std::vector<DividedLayer> divided_layers(const describe::ParameterTable& table,
                                         const schedule::Schedule& schedule, schedule::Rank rank);

/// The matrices that the rank works on, in the order of its layers, and those of other holders.
std::vector<workspace::FlatMatrices> own_matrices(const std::vector<DividedLayer>& layers);
std::vector<workspace::FlatMatrices> matrices_of_others(const std::vector<DividedLayer>& layers);

}  // namespace plenum::memory
