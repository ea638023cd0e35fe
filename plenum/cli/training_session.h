#pragma once

#include <functional>
#include <string>

#include "plenum/train/run_options.h"
#include "plenum/train/trainer.h"

namespace plenum::cli {

/// What is left to do and to say in the first process when training ended, stopped or not.
using AfterTraining = std::function<void(const train::TrainingResult& result)>;

/// Trains a run from the command line: with the other processes that were started for it, if there are any,
/// with a display, and until Ctrl-C or another signal stops it. Options are settled for this process. Returns
/// the exit code.
int run_training(train::RunOptions& options, const AfterTraining& after);

/// Whether options are kept in a directory. Without a lock it is not that of a run, whatever it holds.
bool has_kept_options(const std::string& directory);

/// Where the options of runs that differ by their seed are kept, beside them.
std::string seeds_config(const std::string& directory);
/// Throws UserError for a directory of such runs, where one of them is meant.
void require_one_seed(const std::string& directory);

/// The directory of the run that a file of options is the own configuration of, wherever that was moved;
/// empty for any other file.
std::string run_of_config(const std::string& path);

}  // namespace plenum::cli
