#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/tokenizer/normalizer.h"
#include "plenum/data/tokenizer/vocabulary.h"
#include "plenum/data/tokenizer/word_splitter.h"
#include "plenum/data/tokenizer/wordpiece.h"

namespace plenum::data {

/// A token that is found in text as it is written, before anything is normalised.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool in_model = true;  ///< also a piece of the WordPiece model
  bool special = true;   ///< left out by Hugging Face's decoding unless asked for
};

/// BERT's WordPiece tokenisation with the ids of Hugging Face `tokenizers`. Immutable after construction and
/// shared between threads; each thread encodes through an Encoder of its own.
class Tokenizer {
 public:
  /// Without `added_tokens` the five special tokens are matched in text, as Hugging Face has it for a
  /// vocab.txt.
  Tokenizer(Vocabulary vocabulary, const NormalizerRules& rules, int max_chars_per_word = kMaxCharsPerWord,
            std::optional<std::vector<AddedToken>> added_tokens = std::nullopt);

  /// Reads vocab.txt, tokenizer.json, or a Hugging Face directory (whose case and accent rules are taken).
  /// `rules_for_vocab_txt` holds where no file states rules. Throws UserError naming what is not supported.
  static Tokenizer load(const std::string& path, const NormalizerRules& rules_for_vocab_txt);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const NormalizerRules& rules() const { return normalizer_->rules(); }
  int max_chars_per_word() const { return max_chars_per_word_; }
  const std::vector<AddedToken>& added_tokens() const { return added_tokens_; }

 private:
  friend class Encoder;
  friend class AlignedEncoder;

  /// The longest added token that begins at `at`; nullptr if none does.
  const AddedToken* added_token_at(const char* at, const char* end) const;
  /// The first place from `at` on where an added token might begin; `end` if none.
  const char* find_added_token_start(const char* at, const char* end) const;

  Vocabulary vocabulary_;
  int max_chars_per_word_;
  std::vector<AddedToken> added_tokens_;  ///< longest first
  std::string added_token_starts_;        ///< their first bytes, each once
  // On the heap: what an encoder's splitter points to stays where it is when the tokenizer moves.
  std::unique_ptr<const Normalizer> normalizer_;
  std::unique_ptr<const WordPiece> wordpiece_;
};

/// What to do with "[SEP]" and other added tokens that stand in text.
enum class AddedTokens {
  Match,      ///< they become their own id, as in Hugging Face
  PlainText,  ///< they are text like any other: a corpus cannot forge a special token
};

/// Turns text into ids. One per thread: it owns scratch and a cache of words of fixed size (1 MB). Borrows
/// the tokenizer, which must outlive it.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer, AddedTokens added_tokens = AddedTokens::Match);

  /// Appends the ids of `text` to `ids`; no special token is added. Text that is no UTF-8 is read as U+FFFD
  /// for each part that is no character, which cleaning drops.
  void encode(std::string_view text, std::vector<TokenId>& ids);

 private:
  friend class WordSplitter;

  static constexpr std::size_t kCachedPieces = 3;
  struct CachedWord {
    WordKey key;
    std::uint32_t count = 0;
    TokenId pieces[kCachedPieces] = {};
  };
  /// Two words to a cache line; the newer one first.
  struct alignas(64) Bucket {
    CachedWord words[2];
  };

  // What the splitter calls.
  void short_word(const WordKey& key);
  void long_word(std::string_view word);
  void oversized_word();

  void add_short_word(const WordKey& key, Bucket& bucket);
  /// Writes the pieces of `word`, or the unknown token, behind what was found, and returns how many.
  std::size_t cut(std::string_view word);
  void finish_word(std::size_t count);
  void flush();

  const Tokenizer* tokenizer_;
  AddedTokens added_tokens_;
  WordSplitter splitter_;
  std::vector<Bucket> cache_;
  std::vector<TokenId> found_;  ///< ids not yet handed over; has room for one more word
  std::size_t num_found_ = 0;
  std::vector<TokenId>* ids_ = nullptr;  ///< where the text being encoded goes
};

/// Readable text: `##` pieces joined, the others set apart by spaces, and the clean-up before punctuation and
/// in English contractions that Hugging Face's WordPiece decoder does. Special tokens are shown.
std::string decode(const Vocabulary& vocabulary, std::span<const TokenId> ids);

}  // namespace plenum::data
