#include "plenum/plan/link_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::plan {
namespace {

struct LinkUnit {
  std::string_view name;
  double factor;
};

// Longer names first: each ends with one that follows.
constexpr std::array<LinkUnit, 4> kLatencyUnits = {{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<LinkUnit, 4> kBandwidthUnits = {
    {{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}};

std::optional<double> number_in(std::string_view text, const std::array<LinkUnit, 4>& units,
                                std::string_view what) {
  for (const LinkUnit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    return unit.factor * base::parse_number(text.substr(0, text.size() - unit.name.size()), what);
  }
  return std::nullopt;
}

}  // namespace

Link parse_link(std::string_view text, std::string_view what) {
  std::optional<double> latency;
  std::optional<double> bandwidth;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (part.starts_with("latency=")) latency = number_in(part.substr(8), kLatencyUnits, what);
    if (part.starts_with("bandwidth=")) bandwidth = number_in(part.substr(10), kBandwidthUnits, what);
  }
  base::require(latency && bandwidth && *latency >= 0 && *bandwidth > 0,
                "{} must say a latency and a bandwidth above 0, such as latency=100us,bandwidth=1GB/s: {}",
                what, text);
  return {.latency_seconds = *latency, .bytes_per_second = *bandwidth};
}

std::string link_text(const Link& link) {
  return fmt::format("latency={}s,bandwidth={}B/s", link.latency_seconds, link.bytes_per_second);
}

}  // namespace plenum::plan
