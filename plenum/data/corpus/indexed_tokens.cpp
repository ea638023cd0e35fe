#include "plenum/data/corpus/indexed_tokens.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/io/append_file.h"

namespace plenum::data {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kIndexVersion = 1;
constexpr std::size_t kPointersAtOnce = std::size_t{1} << 15;

constexpr std::uint8_t type_code(TokenWidth width) {
  return width == TokenWidth::Two ? 8 : 4;
}

}  // namespace

void complete_token_index(const std::string& index_path, const std::string& documents_path,
                          TokenWidth width) {
  const io::MappedFile documents_file(documents_path);
  const std::span document_ends(reinterpret_cast<const std::uint64_t*>(documents_file.bytes().data()),
                                documents_file.bytes().size() / sizeof(std::uint64_t));
  const io::MappedFile lengths_file(index_path);
  const std::span<const std::byte> lengths = lengths_file.bytes().subspan(kTokenIndexHeaderBytes);
  const std::size_t num_sentences = lengths.size() / sizeof(std::uint32_t);

  io::AppendFile index(index_path, lengths_file.bytes().size());
  std::uint64_t pointer = 0;
  std::vector<std::uint32_t> some_lengths;
  std::vector<std::uint64_t> pointers;
  for (std::size_t begin = 0; begin < num_sentences; begin += kPointersAtOnce) {
    const std::size_t count = std::min(kPointersAtOnce, num_sentences - begin);
    some_lengths.resize(count);
    std::memcpy(some_lengths.data(), lengths.data() + begin * sizeof(std::uint32_t),
                count * sizeof(std::uint32_t));
    pointers.clear();
    for (const std::uint32_t length : some_lengths) {
      pointers.push_back(pointer);
      pointer += length * bytes_of(width);
    }
    index.append_values(std::span<const std::uint64_t>(pointers));
  }
  index.append_value(std::uint64_t{0});
  index.append_values(document_ends);
  index.flush();

  std::string header(kMagic);
  const auto append = [&](const auto& value) {
    header.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(kIndexVersion);
  append(type_code(width));
  append(std::uint64_t{num_sentences});
  append(std::uint64_t{document_ends.size() + 1});
  index.overwrite(0, header);
  index.sync();
}

IndexedTokens::IndexedTokens(const std::string& tokens_path, const std::string& index_path)
    : tokens_(tokens_path), index_(index_path) {
  const std::size_t size = index_.bytes().size();
  const std::string_view head(reinterpret_cast<const char*>(index_.bytes().data()), size);
  base::require(size >= kTokenIndexHeaderBytes && head.starts_with(kMagic) &&
                    load<std::uint64_t>(kMagic.size()) == kIndexVersion,
                "{} is not an index of tokens; prepare the dataset again", index_path);
  const auto code = load<std::uint8_t>(17);
  base::require(code == type_code(TokenWidth::Two) || code == type_code(TokenWidth::Four),
                "{}: unknown type of tokens: code {}", index_path, code);
  width_ = code == type_code(TokenWidth::Two) ? TokenWidth::Two : TokenWidth::Four;
  num_sentences_ = load<std::uint64_t>(18);
  const auto num_boundaries = load<std::uint64_t>(26);
  constexpr std::uint64_t kPlausible = std::uint64_t{1} << 56;  // so that the sizes below cannot overflow
  const bool plausible = num_sentences_ < kPlausible && num_boundaries > 0 && num_boundaries < kPlausible;
  lengths_offset_ = kTokenIndexHeaderBytes;
  pointers_offset_ = lengths_offset_ + num_sentences_ * sizeof(std::uint32_t);
  documents_offset_ = pointers_offset_ + num_sentences_ * sizeof(std::uint64_t);
  base::require(plausible && size == documents_offset_ + num_boundaries * sizeof(std::uint64_t),
                "{} does not have the size that its header states; prepare the dataset again", index_path);
  num_documents_ = num_boundaries - 1;
  num_tokens_ = tokens_.bytes().size() / bytes_of(width_);
  const std::uint64_t stated =
      num_sentences_ == 0 ? 0 : first_token(num_sentences_ - 1) + sentence_length(num_sentences_ - 1);
  base::require(
      stated * bytes_of(width_) == tokens_.bytes().size() && first_sentence(num_documents_) == num_sentences_,
      "{} does not belong to {}; prepare the dataset again", tokens_path, index_path);
}

TokenId IndexedTokens::token(std::uint64_t index) const {
  const std::byte* place = tokens_.bytes().data() + index * bytes_of(width_);
  if (width_ == TokenWidth::Two) {
    std::uint16_t id = 0;
    std::memcpy(&id, place, sizeof id);
    return id;
  }
  TokenId id = 0;
  std::memcpy(&id, place, sizeof id);
  return id;
}

std::string_view IndexedTokens::bytes(std::uint64_t first, std::uint64_t count) const {
  base::check(first <= num_tokens_ && count <= num_tokens_ - first,
              "tokens must lie in the file: first={} count={} of {}", first, count, num_tokens_);
  const std::size_t width = bytes_of(width_);
  return {reinterpret_cast<const char*>(tokens_.bytes().data()) + first * width, count * width};
}

void IndexedTokens::append_tokens(std::uint64_t first, std::uint64_t count, std::vector<TokenId>& ids) const {
  ids.reserve(ids.size() + count);
  for (std::uint64_t i = first; i < first + count; ++i) ids.push_back(token(i));
}

}  // namespace plenum::data
