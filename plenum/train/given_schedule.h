#pragma once

#include <cstddef>
#include <optional>

#include "plenum/pipeline/bert_program.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_options.h"

namespace plenum::train {

/// The schedule of the file that --schedule names, as the first process reads it; nothing if it names none.
/// Where the file is gone, the copy that the run has kept.
std::optional<schedule::Schedule> read_given_schedule(const RunOptions& options, const Processes& processes,
                                                      const Note& note);

/// Throws UserError, with what to do, unless a schedule from a file is of this run's steps, trains correctly,
/// and can be resumed.
void require_fitting(const schedule::Schedule& given, const RunOptions& options,
                     std::size_t micro_batches_per_replica, const pipeline::BertProgramOptions& program);

}  // namespace plenum::train
