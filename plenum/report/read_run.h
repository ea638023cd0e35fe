#pragma once

#include <string>

#include "plenum/report/run_record.h"

namespace plenum::report {

/// Reads what the directory of a run holds; takes no lock, so it may be called while a run trains. Throws
/// UserError if it is none of a run; what is missing or damaged in one is left out, and said in faults.
RunRecord read_run(const std::string& directory);

}  // namespace plenum::report
