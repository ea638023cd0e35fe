#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/batch/work.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/describe/model_config.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/train/run_options.h"

namespace plenum::train {

/// What a step of a run does, but for K-FAC. Of a pipeline, stages have the layers that --stage-layers says,
/// or such that the dearest does as few operations as can be on work like `typical`. Throws UserError if
/// model and options do not belong together.
schedule::Schedule make_plain_schedule(const RunOptions& options, const describe::ModelConfig& model,
                                       const batch::Work& typical, std::size_t micro_batches_per_replica);

/// Linear maps of a layer that K-FAC has factors of.
std::size_t num_kfac_maps(const describe::ModelConfig& model);

/// The same with K-FAC in every so many steps, outside bubbles, where that is asked for. Checked.
schedule::Schedule make_schedule(const RunOptions& options, const describe::ModelConfig& model,
                                 const batch::Work& typical, std::size_t micro_batches_per_replica);

/// The work of all sequences there are, in a layout: what a step has in proportion.
batch::Work typical_work(const data::SequenceSource& sequences, const data::TrainingDataOptions& options);

/// Into how many micro-batches a replica's part of a step is cut where a pipeline asks for none: four for
/// each of its ranks, so that bubbles are short, but no more than there are items; more where they would have
/// more tokens than --micro-batch-tokens allows. `batches` is of the same data without a given number.
std::int64_t default_micro_batches(const RunOptions& options, const data::StepBatchSource& batches);

/// "1f1b, stages of 3, 3, 3 and 3 layers"; empty where there is one stage.
std::string schedule_text(const schedule::Schedule& schedule);

}  // namespace plenum::train
