#pragma once

#include <string_view>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// Reads a schedule in either form: JSON if the first character that is not blank is a brace, else text.
/// Throws UserError with `source` and line; what it returns is well formed.
Schedule parse_schedule(std::string_view text, std::string_view source);

}  // namespace plenum::schedule
