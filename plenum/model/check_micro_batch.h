#pragma once

#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_description.h"

namespace plenum::model {

/// Throws InternalError if lists that belong together differ in length, or an index of the micro-batch lies
/// outside what it is an index of: tables of the model, or rows of the micro-batch. The CPU's kernels look
/// themselves; a GPU's would read other memory.
void check_micro_batch(const batch::MicroBatch& micro_batch, const describe::ModelDescription& model);

}  // namespace plenum::model
