#pragma once

#include <string>

#include "plenum/trace/timeline.h"

namespace plenum::train {

/// Writes a timeline as its path says: .svg as a drawing, anything else as a trace for Perfetto.
void write_timeline(const std::string& path, const trace::Timeline& timeline);

}  // namespace plenum::train
