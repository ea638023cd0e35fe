#pragma once

#include <cstddef>

#include "plenum/describe/parameter_table.h"

namespace plenum::describe {

/// The part of a range of gradients that one of its holders counts in the norm: the parts of all holders
/// follow each other without gap or overlap, nearly equal, and begin at multiples of 128 elements from the
/// range's begin, as tensors do. Gradients that are summed over the holders of a stage are such a range, and
/// where they are sharded each range that is reduced by itself is one, whose parts are the shards. Parameters
/// that stages share lie in one range, so they are counted once too.
ParameterTable::ElementRange counted_elements(const ParameterTable::ElementRange& range,
                                              std::size_t holder_index, std::size_t num_holders);

}  // namespace plenum::describe
