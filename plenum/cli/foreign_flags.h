#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plenum::cli {

/// What to give in place of a flag that other trainers have and this program calls otherwise, as a half
/// sentence: "use --learning-rate". Dashes and underscores inside a flag are the same. Nothing for others.
std::optional<std::string> foreign_flag_hint(std::string_view command, std::string_view flag);

}  // namespace plenum::cli
