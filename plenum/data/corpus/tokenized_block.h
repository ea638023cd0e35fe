#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/corpus/document_hash.h"
#include "plenum/data/corpus/split.h"
#include "plenum/data/corpus/token_width.h"
#include "plenum/data/text/text_parser.h"
#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::data {

/// Sentences as they stand in the files of a corpus.
struct TokenizedText {
  std::string token_bytes;
  std::vector<std::uint32_t> sentence_lengths;  ///< of sentences with tokens, and of parts of sentences

  void clear();
  /// Appends everything from a byte and a sentence on to `target` and cuts it off here.
  void move_tail(std::size_t first_byte, std::size_t first_sentence, TokenizedText& target);
};

/// What a block holds of a document that lies in several blocks.
struct DocumentPiece {
  TokenizedText text;
  DocumentHash hash;  ///< of the sentences that lie whole in the block
  bool ends = false;
};

/// The documents of one split that lie whole in a block and have tokens.
struct WholeDocuments {
  TokenizedText text;
  std::vector<std::uint64_t> sentence_ends;  ///< number of sentences up to each document's end
  std::vector<std::uint64_t> identities;

  void clear();
};

/// A block of text as token ids: the end of a document that began before, whole documents, and the beginning
/// of one that goes on. A block without an end of a document inside one is all `continued`.
struct TokenizedBlock {
  SourcePosition begin;
  SourcePosition end;
  std::uint64_t file_bytes_done = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t num_unknown = 0;
  InvalidText invalid;
  std::uint64_t num_empty_documents = 0;  ///< among those that lie whole in the block
  DocumentPiece continued;                ///< there if begin.inside_document
  std::array<WholeDocuments, 2> whole;    ///< by split
  DocumentPiece begun;                    ///< there if has_begun()
  std::string continued_sentence;         ///< the text of a sentence that an earlier block began
  std::string begun_sentence;  ///< the text of a sentence that begins here and goes on in the next block

  bool has_begun() const { return end.inside_document && (!begin.inside_document || continued.ends); }
};

/// Turns blocks of text into blocks of tokens, and decides the split of whole documents. One per thread.
class BlockTokenizer final : private TextSink {
 public:
  /// Borrows the first three.
  BlockTokenizer(const std::vector<SourceFile>& files, const TextOptions& options, const Tokenizer& tokenizer,
                 const HoldoutRule& holdout);

  /// Overwrites `result`, whose buffers are used again.
  void tokenize(const TextBlock& block, TokenizedBlock& result);

 private:
  void sentence(std::string_view text, SentencePart part) override;
  void end_document() override;
  void end_whole_document();

  TextParser parser_;
  Encoder encoder_;
  HoldoutRule holdout_;
  TokenId unknown_;
  TokenWidth width_;
  std::vector<TokenId> ids_;
  TokenizedBlock* result_ = nullptr;
  TokenizedText* open_ = nullptr;  ///< where the open document is gathered
  std::size_t document_byte_ = 0;  ///< where it begins there
  std::size_t document_sentence_ = 0;
  DocumentHash document_hash_;
};

}  // namespace plenum::data
