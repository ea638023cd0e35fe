#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plenum/plan/cluster.h"

namespace plenum::plan {

/// A change of a cluster, whose effect on a plan is asked for.
struct WhatIf {
  enum class What : std::uint8_t { LinkBandwidth, LinkLatency, DeviceFlops, DeviceBandwidth, Memory };

  What what = What::LinkBandwidth;
  double value = 1;
  bool is_factor = true;  ///< of what there is; else it stands in its place

  std::string text() const;  ///< "link.bandwidth=2x"
};

/// Reads "link.bandwidth=2x" or "link.bandwidth=25e9" (bytes, seconds, FLOPs), and of the other things:
/// link.latency, device.flops, device.bandwidth, memory. Throws UserError naming the option `what`.
WhatIf parse_what_if(std::string_view text, std::string_view what);

/// Links within nodes and between them alike.
Cluster changed(Cluster cluster, const WhatIf& change);

}  // namespace plenum::plan
