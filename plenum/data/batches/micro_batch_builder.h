#pragma once

#include "plenum/batch/micro_batch.h"
#include "plenum/data/batches/micro_batch_assembly.h"

namespace plenum::data {

/// What a micro-batch is for: only training needs rows grouped by table entry.
enum class MicroBatchUse { Training, Evaluation };

/// Reads the sequences of a micro-batch, and masks them unless they are labelled for a task. Throws UserError
/// naming source and sequence if a token is not of the vocabulary.
batch::MicroBatch build_micro_batch(const MicroBatchPlan& plan, const SequenceSource& source,
                                    const Masking& masking, MicroBatchUse use);

}  // namespace plenum::data
