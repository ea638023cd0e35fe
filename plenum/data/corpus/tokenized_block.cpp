#include "plenum/data/corpus/tokenized_block.h"

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

/// Empties a container and keeps its memory, unless an unusually long record made it large.
template <typename Container>
void clear_for_reuse(Container& container) {
  constexpr std::size_t kMostKeptBytes = std::size_t{1} << 23;
  container.clear();
  if (container.capacity() * sizeof(container[0]) > kMostKeptBytes) container.shrink_to_fit();
}

}  // namespace

void TokenizedText::clear() {
  clear_for_reuse(token_bytes);
  clear_for_reuse(sentence_lengths);
}

void TokenizedText::move_tail(std::size_t first_byte, std::size_t first_sentence, TokenizedText& target) {
  target.token_bytes.append(token_bytes, first_byte);
  token_bytes.resize(first_byte);
  const auto first = sentence_lengths.begin() + static_cast<std::ptrdiff_t>(first_sentence);
  target.sentence_lengths.insert(target.sentence_lengths.end(), first, sentence_lengths.end());
  sentence_lengths.erase(first, sentence_lengths.end());
}

void WholeDocuments::clear() {
  text.clear();
  clear_for_reuse(sentence_ends);
  clear_for_reuse(identities);
}

BlockTokenizer::BlockTokenizer(const std::vector<SourceFile>& files, const TextOptions& options,
                               const Tokenizer& tokenizer, const HoldoutRule& holdout)
    : parser_(files, options),
      encoder_(tokenizer),
      holdout_(holdout),
      unknown_(tokenizer.vocabulary().special().unknown),
      width_(token_width_for(tokenizer.vocabulary().size())) {}

void BlockTokenizer::tokenize(const TextBlock& block, TokenizedBlock& result) {
  result.begin = block.begin;
  result.end = block.end;
  result.file_bytes_done = block.file_bytes_done;
  result.text_bytes = block.bytes.size();
  result.num_unknown = 0;
  result.num_empty_documents = 0;
  for (DocumentPiece* piece : {&result.continued, &result.begun}) {
    piece->text.clear();
    piece->hash = {};
    piece->ends = false;
  }
  for (WholeDocuments& whole : result.whole) whole.clear();
  clear_for_reuse(result.continued_sentence);
  clear_for_reuse(result.begun_sentence);

  // A whole document is gathered among those of the training split and moved at its end if need be.
  TokenizedText& gathered = result.whole[index_of(Split::Train)].text;
  result_ = &result;
  open_ = block.begin.inside_document ? &result.continued.text : &gathered;
  document_byte_ = 0;
  document_sentence_ = 0;
  document_hash_ = {};
  result.invalid = parser_.parse(block, *this);
  if (!block.end.inside_document) return;
  if (result.has_begun()) {
    gathered.move_tail(document_byte_, document_sentence_, result.begun.text);
    result.begun.hash = document_hash_;
  } else {
    result.continued.hash = document_hash_;
  }
}

void BlockTokenizer::sentence(std::string_view text, SentencePart part) {
  ids_.clear();
  encoder_.encode(text, ids_);
  append_token_bytes(ids_, width_, open_->token_bytes);
  result_->num_unknown += static_cast<std::uint64_t>(std::count(ids_.begin(), ids_.end(), unknown_));
  if (!ids_.empty() || part != SentencePart::Whole) {
    open_->sentence_lengths.push_back(static_cast<std::uint32_t>(ids_.size()));
  }
  switch (part) {
    case SentencePart::Whole:
      document_hash_.add_sentence(text);
      break;
    case SentencePart::First:
      result_->begun_sentence = text;
      break;
    case SentencePart::Middle:
    case SentencePart::Last:
      result_->continued_sentence = text;
      break;
  }
}

void BlockTokenizer::end_document() {
  if (open_ == &result_->continued.text) {
    result_->continued.hash = document_hash_;
    result_->continued.ends = true;
  } else {
    end_whole_document();
  }
  open_ = &result_->whole[index_of(Split::Train)].text;
  document_byte_ = open_->token_bytes.size();
  document_sentence_ = open_->sentence_lengths.size();
  document_hash_ = {};
}

void BlockTokenizer::end_whole_document() {
  if (open_->token_bytes.size() == document_byte_) {
    ++result_->num_empty_documents;
    return;
  }
  const std::uint64_t identity = document_hash_.identity();
  const Split split = holdout_.split_of(identity);
  WholeDocuments& whole = result_->whole[index_of(split)];
  if (split != Split::Train) open_->move_tail(document_byte_, document_sentence_, whole.text);
  whole.sentence_ends.push_back(whole.text.sentence_lengths.size());
  whole.identities.push_back(identity);
}

}  // namespace plenum::data
