#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plenum/base/progress.h"
#include "plenum/data/corpus/dataset_description.h"

namespace plenum::data {

/// Divides the dataset whose files lie in `directory` into `count` shards, directories in it, on
/// `num_threads` threads. Each holds the tokens of its own training sequences, end to end in the order of
/// their numbers, and all that is held out; it is a directory of its own that can be moved elsewhere. What
/// lay there of an earlier try is replaced. Throws UserError if there are fewer sequences than shards.
/// Returns when all is on the disk.
void write_shards(const std::string& directory, const DatasetDescription& description, std::uint64_t count,
                  std::size_t num_threads, base::Progress& progress);

}  // namespace plenum::data
