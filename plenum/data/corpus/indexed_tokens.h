#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/corpus/split.h"
#include "plenum/data/corpus/token_width.h"
#include "plenum/data/tokenizer/vocabulary.h"
#include "plenum/io/file.h"

namespace plenum::data {

constexpr std::size_t kTokenIndexHeaderBytes = 34;

/// Completes the index of a token file as Megatron-LM's indexed dataset has it (an indexed "sequence" is a
/// sentence): "MMIDIDX\0\0", u64 version 1, u8 type code (uint16 8, int32 4), u64 sentences, u64 documents +
/// 1, i32 lengths[], i64 byte offsets[], i64 first sentence of each document[] and the number of sentences
/// behind. CorpusWriter left room for the header and the lengths in it, and the document ends (u64) in
/// another file. In bounded memory; returns when the file is on the disk.
void complete_token_index(const std::string& index_path, const std::string& documents_path, TokenWidth width);

/// A token file and its index, mapped.
class IndexedTokens {
 public:
  /// Throws UserError naming the file whose header, size or order is wrong.
  IndexedTokens(const std::string& tokens_path, const std::string& index_path);

  std::uint64_t num_tokens() const { return num_tokens_; }
  std::uint64_t num_sentences() const { return num_sentences_; }
  std::uint64_t num_documents() const { return num_documents_; }
  TokenWidth width() const { return width_; }

  std::uint32_t sentence_length(std::uint64_t sentence) const {
    return load<std::uint32_t>(lengths_offset_ + sentence * sizeof(std::uint32_t));
  }
  /// The number of the sentence's first token.
  std::uint64_t first_token(std::uint64_t sentence) const {
    return load<std::uint64_t>(pointers_offset_ + sentence * sizeof(std::uint64_t)) / bytes_of(width_);
  }
  /// The number of the document's first sentence; of the sentence behind the last for num_documents().
  std::uint64_t first_sentence(std::uint64_t document) const {
    return load<std::uint64_t>(documents_offset_ + document * sizeof(std::uint64_t));
  }

  TokenId token(std::uint64_t index) const;
  /// Tokens [first, first + count) as they lie in the file.
  std::string_view bytes(std::uint64_t first, std::uint64_t count) const;
  /// Appends tokens [first, first + count) to `ids`.
  void append_tokens(std::uint64_t first, std::uint64_t count, std::vector<TokenId>& ids) const;

 private:
  /// The fields behind the 34-byte header are not aligned.
  template <typename Value>
  Value load(std::size_t offset) const {
    Value value;
    std::memcpy(&value, index_.bytes().data() + offset, sizeof value);
    return value;
  }

  io::MappedFile tokens_;
  io::MappedFile index_;
  TokenWidth width_ = TokenWidth::Two;
  std::uint64_t num_tokens_ = 0;
  std::uint64_t num_sentences_ = 0;
  std::uint64_t num_documents_ = 0;
  std::size_t lengths_offset_ = 0;
  std::size_t pointers_offset_ = 0;
  std::size_t documents_offset_ = 0;
};

}  // namespace plenum::data
