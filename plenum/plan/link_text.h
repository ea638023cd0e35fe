#pragma once

#include <string>
#include <string_view>

#include "plenum/plan/link.h"

namespace plenum::plan {

/// "latency=100us,bandwidth=1GB/s", in any order: latency in ns, us, ms or s, bandwidth in B/s, kB/s, MB/s or
/// GB/s of powers of ten. Throws UserError naming `what` for anything else, a negative latency, and a
/// bandwidth that is not above 0.
Link parse_link(std::string_view text, std::string_view what);
/// What parse_link() reads back as the same value.
std::string link_text(const Link& link);

}  // namespace plenum::plan
