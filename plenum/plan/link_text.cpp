#include "plenum/plan/link_text.h"

#include <algorithm>
#include <array>
#include <cmath>
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
  constexpr std::string_view kLatency = "latency=";
  constexpr std::string_view kBandwidth = "bandwidth=";
  std::optional<double> latency;
  std::optional<double> bandwidth;
  bool is_understood = true;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    if (part.starts_with(kLatency)) {
      latency = number_in(part.substr(kLatency.size()), kLatencyUnits, what);
    } else if (part.starts_with(kBandwidth)) {
      bandwidth = number_in(part.substr(kBandwidth.size()), kBandwidthUnits, what);
    } else {
      is_understood = false;
    }
  }
  constexpr double kMostLatencySeconds = 60;
  constexpr double kLeastBytesPerSecond = 1;
  base::require(is_understood && latency && bandwidth && *latency >= 0 && *latency <= kMostLatencySeconds &&
                    *bandwidth >= kLeastBytesPerSecond && std::isfinite(*bandwidth),
                "{} must say a latency of at most a minute and a bandwidth of at least 1B/s, such as "
                "latency=100us,bandwidth=1GB/s: {}",
                what, text);
  return {.latency_seconds = *latency, .bytes_per_second = *bandwidth};
}

std::string link_text(const Link& link) {
  return fmt::format("latency={}s,bandwidth={}B/s", link.latency_seconds, link.bytes_per_second);
}

}  // namespace plenum::plan
