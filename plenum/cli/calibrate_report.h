#pragma once

#include <string>

#include "plenum/calibrate/machine.h"

namespace plenum::cli {

/// What was measured, for people: a line for each setting, and for each link between ranks.
std::string calibrate_report_text(const calibrate::Machine& machine);

/// The same as JSON, with every point.
std::string calibrate_report_json(const calibrate::Machine& machine);

}  // namespace plenum::cli
