#pragma once

#include <string>

#include "plenum/report/run_record.h"

namespace plenum::report {

/// What happened to a run beside its steps, as a table: processes that began, resumed and ended, checkpoints,
/// skipped steps, notes. Where a process ended without a word, that is said. Of very many the first and the
/// last ones.
std::string events_html(const RunRecord& run);

}  // namespace plenum::report
