#include "plenum/data/tokenizer/word_splitter.h"

namespace plenum::data {

WordSplitter::WordSplitter(const Normalizer& normalizer, std::size_t max_word_chars)
    : normalizer_(&normalizer),
      max_word_chars_(max_word_chars),
      fold_mask_(normalizer.rules().lowercase ? 0x2020202020202020U : 0) {
  for (char32_t byte = 0; byte < 0x80; ++byte) {
    const Normalizer::Kind kind = normalizer[byte].kind();
    const bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    const bool is_digit = byte >= '0' && byte <= '9';
    AsciiKind& found = kinds_[byte];
    if (is_letter || is_digit) {
      found = AsciiKind::Alphanumeric;
    } else if (kind == Normalizer::Kind::Space) {
      found = AsciiKind::Space;
    } else if (kind == Normalizer::Kind::Isolated) {
      found = AsciiKind::Isolated;
    }
  }
}

/// Puts a mark where canonical ordering wants it among the marks since the last starter: behind those of its
/// own class and below.
void WordSplitter::append_sorted(char32_t code_point, std::uint8_t combining_class) {
  if (++num_chars_ > max_word_chars_) return;
  std::size_t place = word_.size();
  std::size_t index = pending_.size();
  while (index > 0 && pending_[index - 1].combining_class > combining_class) {
    --index;
    place -= pending_[index].num_bytes;
  }
  char bytes[4];
  const std::uint32_t length = encode_utf8(code_point, bytes);
  word_.insert(place, bytes, length);
  pending_.insert(pending_.begin() + static_cast<std::ptrdiff_t>(index),
                  {combining_class, static_cast<std::uint8_t>(length)});
}

}  // namespace plenum::data
