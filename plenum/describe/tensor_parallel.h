#pragma once

#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/describe/parameter_table.h"

namespace plenum::describe {

/// The model as one rank of a tensor-parallel group holds it: attention by whole heads, the MLP by its inner
/// width, words by rows, everything else whole. Its ParameterTable is the rank's; the slices of all ranks
/// make up every tensor without gap or overlap. A group of one holds the model itself.
///
/// Inner width and words are divided as evenly as multiples of 8 can be, so their number need not be a
/// multiple of the group's size; that of heads must. Throws UserError if it is not, or if there is less of
/// something than there are ranks.
ModelDescription tensor_parallel_slice(ModelDescription model, const TensorParallel& place);

/// The parts of a range of such a rank's elements that it counts where each element of the whole model is to
/// be counted once: all on the first rank, on the others those of divided tensors. In order; what lies
/// between tensors may be in any.
std::vector<ParameterTable::ElementRange> counted_by_slice(const ParameterTable& table,
                                                           const ParameterTable::ElementRange& range);

}  // namespace plenum::describe
