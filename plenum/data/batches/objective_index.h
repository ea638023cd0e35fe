#pragma once

#include <cstddef>

namespace plenum::data {

// Where the objectives that datasets have labels for stand among those of a model (describe/bert.h).
inline constexpr std::size_t kMaskedTokens = 0;
inline constexpr std::size_t kNextSentence = 1;

}  // namespace plenum::data
