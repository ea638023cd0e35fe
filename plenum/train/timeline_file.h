#pragma once

#include <string>

#include "plenum/trace/timeline.h"

namespace plenum::train {

/// Throws UserError if no timeline could be written there: its directory is missing or not to be written to,
/// or something else has the name. It may lie in `run_directory`, which need not be there yet. Leaves nothing
/// behind.
void require_timeline_path(const std::string& path, const std::string& run_directory);

/// Writes a timeline as its path says: .svg as a drawing, anything else as a trace for Perfetto.
void write_timeline(const std::string& path, const trace::Timeline& timeline);

}  // namespace plenum::train
