#include "plenum/plan/what_if.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/options.h"

namespace plenum::plan {
namespace {

constexpr std::array<std::pair<std::string_view, WhatIf::What>, 5> kNames = {{
    {"link.bandwidth", WhatIf::What::LinkBandwidth},
    {"link.latency", WhatIf::What::LinkLatency},
    {"device.flops", WhatIf::What::DeviceFlops},
    {"device.bandwidth", WhatIf::What::DeviceBandwidth},
    {"memory", WhatIf::What::Memory},
}};

}  // namespace

std::string WhatIf::text() const {
  for (const auto& [name, meaning] : kNames) {
    if (meaning == what) return fmt::format("{}={:g}{}", name, value, is_factor ? "x" : "");
  }
  return "";
}

WhatIf parse_what_if(std::string_view text, std::string_view what) {
  const std::size_t equals = text.find('=');
  base::require(equals != std::string_view::npos, "{} must be a change such as link.bandwidth=2x: '{}'", what,
                text);
  const std::string_view name = text.substr(0, equals);
  WhatIf change;
  bool is_known = false;
  std::vector<std::string> known;
  for (const auto& [of_known, meaning] : kNames) {
    known.emplace_back(of_known);
    if (of_known != name) continue;
    change.what = meaning;
    is_known = true;
  }
  base::require(is_known, "{} can change {}: '{}'{}", what, fmt::join(known, ", "), name,
                base::suggest_name(name, known));
  std::string_view number = text.substr(equals + 1);
  change.is_factor = number.ends_with('x');
  if (change.is_factor) number.remove_suffix(1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), change.value);
  constexpr double kLeast = 1e-12;  // a picosecond
  constexpr double kMost = 1e30;
  base::require(
      error == std::errc() && end == number.data() + number.size() && change.value >= kLeast &&
          change.value <= kMost,
      "{} must say how much, from {} to {}, as a factor (2x) or in bytes, seconds or FLOPs (25e9): '{}'",
      what, kLeast, kMost, text);
  return change;
}

Cluster changed(Cluster cluster, const WhatIf& change) {
  const auto apply = [&](double& value) { value = change.is_factor ? value * change.value : change.value; };
  switch (change.what) {
    case WhatIf::What::LinkBandwidth:
      apply(cluster.within_node.bytes_per_second);
      apply(cluster.between_nodes.bytes_per_second);
      break;
    case WhatIf::What::LinkLatency:
      apply(cluster.within_node.latency_seconds);
      apply(cluster.between_nodes.latency_seconds);
      break;
    case WhatIf::What::DeviceFlops:
      apply(cluster.device.peak_flops);
      break;
    case WhatIf::What::DeviceBandwidth:
      apply(cluster.device.peak_bytes_per_second);
      break;
    case WhatIf::What::Memory:
      apply(cluster.memory_bytes);
      break;
  }
  return cluster;
}

}  // namespace plenum::plan
