#pragma once

#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::memory {

/// The matrices of the linear maps of a model's layers in the flat buffers, each part of a map that holds
/// several (queries, keys and values) by itself. Those of one map in layers that lie at equal distances are
/// one group.
std::vector<workspace::FlatMatrices> hidden_matrices(const describe::ParameterTable& table);

}  // namespace plenum::memory
