#include "plenum/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::base {

std::string format_count(std::uint64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> kSuffixes = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  std::size_t suffix = 0;
  while (value >= 999.5 && suffix + 1 < kSuffixes.size()) {
    value /= 1000;
    ++suffix;
  }
  return fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, kSuffixes[suffix]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

double parse_seconds(std::string_view text, std::string_view what) {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const double time = parse_number(text.substr(0, text.size() - unit.size()), what) * seconds;
    require(time > 0, "{} must be more than nothing: {}", what, text);
    return time;
  }
  fail("{} must be a time such as 90s, 30min, 47h or 2d: '{}'", what, text);
}

double parse_bytes(std::string_view text, std::string_view what) {
  static constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{{"KiB", 0x1p10},
                                                                                 {"MiB", 0x1p20},
                                                                                 {"GiB", 0x1p30},
                                                                                 {"TiB", 0x1p40},
                                                                                 {"kB", 1e3},
                                                                                 {"MB", 1e6},
                                                                                 {"GB", 1e9},
                                                                                 {"TB", 1e12},
                                                                                 {"B", 1}}};
  double unit = 1;
  for (const auto& [name, bytes] : kUnits) {
    if (!text.ends_with(name)) continue;
    unit = bytes;
    text.remove_suffix(name.size());
    break;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  const double bytes = parse_number(text, what) * unit;
  require(bytes > 0, "{} must be more than nothing: {}", what, text);
  return bytes;
}

double parse_fraction(std::string_view text, std::string_view what) {
  const bool percent = text.ends_with('%');
  const double number = parse_number(percent ? text.substr(0, text.size() - 1) : text, what);
  const double fraction = percent ? number / 100 : number;
  require(fraction >= 0 && fraction <= 1, "{} must be between 0 and 1, or 0% and 100%: {}", what, text);
  return fraction;
}

std::int64_t parse_integer(std::string_view text, std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error != std::errc::result_out_of_range, "{} is out of range: {}", what, text);
  require(error == std::errc{} && end == text.data() + text.size(), "{} must be a whole number: '{}'", what,
          text);
  return value;
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc{} && end == text.data() + text.size() && std::isfinite(value),
          "{} must be a number: '{}'", what, text);
  return value;
}

}  // namespace plenum::base
