#pragma once

#include <cstddef>

namespace plenum::data {

// Where the objectives that datasets have labels for stand among those of a model (describe/bert.h).
inline constexpr std::size_t kMaskedTokens = 0;
inline constexpr std::size_t kNextSentence = 1;
/// Of a model that is fine-tuned, the only one.
inline constexpr std::size_t kTask = 0;
/// Masked tokens, or the task: the one of which a sequence may have many labels, which micro-batches must
/// have room for.
inline constexpr std::size_t kFirstObjective = 0;

}  // namespace plenum::data
