#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plenum::control {

/// What must be the same on all ranks, by name: options, dataset, build. Names stand once.
using Fingerprint = std::vector<std::pair<std::string, std::string>>;

std::string encode(const Fingerprint& fingerprint);
/// None for anything that encode() does not give.
std::optional<Fingerprint> parse_fingerprint(std::string_view bytes);

/// What differs, as far as three names: "seed is 1 and not 2, layout is padded and not packed, and 4 more".
/// Empty where nothing does. `theirs` is named first; long values are cut.
std::string difference_text(const Fingerprint& theirs, const Fingerprint& ours);

}  // namespace plenum::control
