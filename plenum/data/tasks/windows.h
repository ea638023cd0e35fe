#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plenum::data {

/// A part of a text that a sequence has room for, in tokens.
struct TextWindow {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  friend bool operator==(const TextWindow&, const TextWindow&) = default;
};

/// Windows over all tokens of a text, as Hugging Face's tokenizers cut them: each but the last has `room`
/// tokens, and begins with the last `stride` of the one before. One, of all, if they fit; also of no tokens.
/// 0 <= stride < room.
std::vector<TextWindow> cut_windows(std::int32_t num_tokens, std::int32_t room, std::int32_t stride);

/// The window in which a token has most context: the most tokens on that side of it that has fewer; the
/// first of equals. The token lies in one of them.
std::size_t widest_context(std::int32_t token, std::span<const TextWindow> windows);

/// What remains of two texts of so many tokens that may have `room` together: the longer one loses tokens
/// until they are equal, then both, as Hugging Face's "longest_first" has it.
std::pair<std::int32_t, std::int32_t> truncate_longest_first(std::int32_t first, std::int32_t second,
                                                             std::int32_t room);

}  // namespace plenum::data
