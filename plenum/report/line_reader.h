#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plenum/base/function_ref.h"

namespace plenum::report {

/// Hands over the whole lines of a file one after the other, each with kLinePadding readable bytes behind it
/// and without its end. What has no end yet is being written, and left out. Returns whether something was.
/// Reads what is there when it begins, in pieces; a file that is not there has no lines.
inline constexpr std::size_t kLinePadding = 64;
bool read_lines(const std::string& path, base::FunctionRef<void(std::string_view line)> use);

}  // namespace plenum::report
