#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plenum::base {

/// 16279552 -> "16,279,552".
std::string format_count(std::uint64_t count);

/// 41943040 -> "41.9 MB" (powers of ten, as disks and networks count).
std::string format_bytes(std::uint64_t bytes);

/// 0.0123 -> "12.3 ms", 75 -> "1 min 15 s", 7300 -> "2 h 1 min".
std::string format_seconds(double seconds);

/// "90s", "30min", "47h", "1.5d" -> seconds. Throws UserError naming `what` for anything else.
double parse_seconds(std::string_view text, std::string_view what);

/// "24GB", "512MiB", "24e9" -> bytes. Throws UserError naming `what` for anything else.
double parse_bytes(std::string_view text, std::string_view what);

/// "0.5%" -> 0.005, "0.005" -> 0.005. Throws UserError for anything outside [0, 1], naming `what`.
double parse_fraction(std::string_view text, std::string_view what);

/// A whole decimal number, all of `text`. Throws UserError naming `what` otherwise.
std::int64_t parse_integer(std::string_view text, std::string_view what);

/// A finite decimal number, all of `text`. Throws UserError naming `what` otherwise.
double parse_number(std::string_view text, std::string_view what);

}  // namespace plenum::base
