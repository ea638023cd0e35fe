#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/document_hash.h"
#include "plenum/data/text_parser.h"
#include "plenum/data/token_width.h"
#include "plenum/data/tokenizer.h"

namespace plenum::data {

/// What a block holds of one document.
struct DocumentPiece {
  std::uint64_t num_sentences = 0;  ///< entries of TokenizedBlock::sentence_lengths
  std::uint64_t num_tokens = 0;
  DocumentHash hash;  ///< of the sentences that lie whole in the block
  bool ends = false;
};

/// A block of text as token ids.
struct TokenizedBlock {
  SourcePosition begin;
  SourcePosition end;
  std::uint64_t file_bytes_done = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t num_unknown = 0;
  std::string token_bytes;                      ///< as they stand in a token file
  std::vector<std::uint32_t> sentence_lengths;  ///< of sentences with tokens, and of parts of sentences
  std::vector<DocumentPiece> pieces;
  std::string continued_text;   ///< the text of a sentence that an earlier block began
  std::string unfinished_text;  ///< the text of a sentence that begins here and goes on in the next block
};

/// Turns blocks of text into blocks of tokens. One per thread.
class BlockTokenizer final : private TextSink {
 public:
  /// Borrows all three.
  BlockTokenizer(const std::vector<SourceFile>& files, const TextOptions& options,
                 const Tokenizer& tokenizer);

  TokenizedBlock tokenize(const TextBlock& block);

 private:
  void sentence(std::string_view text, SentencePart part) override;
  void end_document() override;

  TextParser parser_;
  Encoder encoder_;
  TokenId unknown_;
  TokenWidth width_;
  std::vector<TokenId> ids_;
  TokenizedBlock result_;
  DocumentPiece piece_;
};

}  // namespace plenum::data
