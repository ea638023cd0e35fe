#pragma once

#include <string>
#include <string_view>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// Writes a schedule as a JSON object: "format", "version", its settings, and "ranks", each with what it
/// "holds" and for each lane that does something a list of steps, their actions as words with blanks between
/// them. docs/schedules.md has the format.
std::string print_schedule_json(const Schedule& schedule);

/// Reads what print_schedule_json() writes. Throws UserError with `source` and line; what it returns is well
/// formed.
Schedule parse_schedule_json(std::string_view text, std::string_view source);

}  // namespace plenum::schedule
