#include "plenum/data/tokenized_block.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace plenum::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

/// Appends `ids` to `bytes` as unsigned 16-bit or signed 32-bit numbers.
void append_token_bytes(const std::vector<TokenId>& ids, TokenWidth width, std::string& bytes) {
  const std::size_t begin = bytes.size();
  bytes.resize(begin + ids.size() * bytes_of(width));
  if (width == TokenWidth::Two) {
    char* out = bytes.data() + begin;
    for (const TokenId id : ids) {
      *out++ = static_cast<char>(id);
      *out++ = static_cast<char>(id >> 8);
    }
  } else {
    const char* first = reinterpret_cast<const char*>(ids.data());
    std::copy(first, first + ids.size() * sizeof(TokenId), bytes.data() + begin);
  }
}

}  // namespace

BlockTokenizer::BlockTokenizer(const std::vector<SourceFile>& files, const TextOptions& options,
                               const Tokenizer& tokenizer)
    : parser_(files, options),
      encoder_(tokenizer),
      unknown_(tokenizer.vocabulary().special().unknown),
      width_(token_width_for(tokenizer.vocabulary().size())) {}

TokenizedBlock BlockTokenizer::tokenize(const TextBlock& block) {
  result_ = {};
  piece_ = {};
  result_.begin = block.begin;
  result_.end = block.end;
  result_.file_bytes_done = block.file_bytes_done;
  result_.text_bytes = block.bytes.size();
  parser_.parse(block, *this);
  if (block.end.inside_document) result_.pieces.push_back(std::exchange(piece_, {}));
  return std::move(result_);
}

void BlockTokenizer::sentence(std::string_view text, SentencePart part) {
  ids_.clear();
  encoder_.encode(text, ids_);
  append_token_bytes(ids_, width_, result_.token_bytes);
  result_.num_unknown += static_cast<std::uint64_t>(std::count(ids_.begin(), ids_.end(), unknown_));
  piece_.num_tokens += ids_.size();
  if (!ids_.empty() || part != SentencePart::Whole) {
    result_.sentence_lengths.push_back(static_cast<std::uint32_t>(ids_.size()));
    piece_.num_sentences += 1;
  }
  switch (part) {
    case SentencePart::Whole:
      piece_.hash.add_sentence(text);
      break;
    case SentencePart::First:
      result_.unfinished_text = text;
      break;
    case SentencePart::Middle:
    case SentencePart::Last:
      result_.continued_text = text;
      break;
  }
}

void BlockTokenizer::end_document() {
  piece_.ends = true;
  result_.pieces.push_back(std::exchange(piece_, {}));
}

}  // namespace plenum::data
