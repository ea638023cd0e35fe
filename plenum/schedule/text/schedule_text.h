#pragma once

#include <string>
#include <string_view>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// Writes a schedule as lines: `plenum-schedule 1`, its settings, the stages that each rank holds, and a row
/// for each rank and lane that does something, its steps set apart by `|`. docs/schedules.md has the format.
/// Throws UserError if the name does not fit on a line.
std::string print_schedule_text(const Schedule& schedule);

/// Reads what print_schedule_text() writes, with blank lines and comments (# at the start of a line or after
/// a blank). Throws UserError with `source` and line; what it returns is well formed.
Schedule parse_schedule_text(std::string_view text, std::string_view source);

}  // namespace plenum::schedule
