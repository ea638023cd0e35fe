#pragma once

#include "plenum/base/progress.h"
#include "plenum/data/corpus/dataset_description.h"
#include "plenum/data/corpus/prepare_options.h"

namespace plenum::data {

/// What became of a call of prepare().
struct PrepareResult {
  DatasetDescription description;
  bool was_there = false;           ///< the same input and options had been prepared before
  std::uint64_t resumed_bytes = 0;  ///< of text that an earlier run had done already
};

/// Makes a dataset (docs/formats.md) out of text. It appears at options.output whole or not at all. An
/// earlier run that was interrupted is continued if input and options are the same. The same input and
/// options give the same bytes for any number of threads. Throws UserError for what the user can mend; what
/// was done by then is continued next time.
PrepareResult prepare(const PrepareOptions& options, base::Progress& progress);

}  // namespace plenum::data
