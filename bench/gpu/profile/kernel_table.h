#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/batch/work.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/model_config.h"

#include "bench/gpu/profile/kernel_records.h"
#include "bench/gpu/profile/product_calls.h"

namespace plenum::bench {

/// The steps of training that were recorded.
struct RecordedSteps {
  describe::ModelConfig model;
  std::int64_t num_steps = 0;
  batch::Work work = {};       ///< of all of them
  std::int64_t num_rows = 0;   ///< of all of them, padding included
  double seconds_of_step = 0;  ///< of one, when nothing was recorded
  // What the GPU can do: a large product when warm, and a copy, bytes read and written.
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

/// A table of at most 100 columns: for each group of kernels launches, ms and share of a step, and where the
/// work is known what was reached and its share of what the GPU can do; then the time in which nothing ran.
/// Products are told apart by the calls where there is one call for each of the library's kernels, and else
/// by their kernels' names.
std::string kernel_table(const std::vector<KernelRecord>& records, const std::vector<ProductCall>& calls,
                         const RecordedSteps& steps);

}  // namespace plenum::bench
