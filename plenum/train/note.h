#pragma once

#include <functional>
#include <string_view>

namespace plenum::train {

/// Says one line to whoever watches.
using Note = std::function<void(std::string_view line)>;

}  // namespace plenum::train
