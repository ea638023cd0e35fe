#pragma once

#include <cstddef>
#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::memory {

/// The matrices of the linear maps of a model's layers in the flat buffers, each part of a map that holds
/// several (queries, keys and values) by itself. Those of one map in layers that lie at equal distances are
/// one group.
std::vector<workspace::FlatMatrices> hidden_matrices(const describe::ParameterTable& table);

/// Those of one layer of the model that the table holds, each a group by itself, in the order of
/// describe::factor_shapes().
std::vector<workspace::FlatMatrices> matrices_of_layer(const describe::ParameterTable& table,
                                                       std::size_t layer);

}  // namespace plenum::memory
