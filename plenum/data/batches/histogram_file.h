#pragma once

#include <string>

#include "plenum/packing/histogram.h"
#include "plenum/packing/histogram_text.h"

namespace plenum::data {

/// Reads a histogram, or a length per line, from a text file of any size, also .gz or .zst, in bounded
/// memory. The forms are those of packing::HistogramText. Throws UserError with file and line.
packing::LengthHistogram read_histogram_file(const std::string& path, packing::HistogramText::Form form);

}  // namespace plenum::data
