#pragma once

#include <cstdint>
#include <string>

#include "plenum/packing/histogram.h"

namespace plenum::data {

/// The lengths of a dataset's training sequences.
struct DatasetHistogram {
  packing::LengthHistogram histogram;
  std::int64_t max_length = 0;  ///< what the dataset was prepared for; no sequence is longer
};

/// Reads them from `dataset.json` in a dataset's directory. Throws UserError naming the file.
DatasetHistogram read_dataset_histogram(const std::string& directory);

}  // namespace plenum::data
