#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plenum::data {

using TokenId = std::int32_t;

/// What begins a piece that continues a word.
constexpr std::string_view kContinuingPrefix = "##";

/// The special tokens, in the order in which a trained vocabulary numbers them.
constexpr std::string_view kSpecialTokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/// The five tokens every BERT vocabulary names.
struct SpecialTokens {
  TokenId pad = 0;
  TokenId unknown = 0;
  TokenId cls = 0;
  TokenId sep = 0;
  TokenId mask = 0;

  friend bool operator==(const SpecialTokens&, const SpecialTokens&) = default;
};

/// The tokens of a model, numbered from 0.
class Vocabulary {
 public:
  /// Throws UserError, naming `source`, when a token stands twice or a special token is missing.
  Vocabulary(std::vector<std::string> tokens, const std::string& source);
  Vocabulary(Vocabulary&&) = default;  // not copied: ids_ points into tokens_
  Vocabulary& operator=(Vocabulary&&) = default;

  std::size_t size() const { return tokens_.size(); }
  const std::string& token(TokenId id) const { return tokens_[static_cast<std::size_t>(id)]; }
  const std::vector<std::string>& tokens() const { return tokens_; }
  const SpecialTokens& special() const { return special_; }

  /// The id of `token`, or -1.
  TokenId find(std::string_view token) const;

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string_view, TokenId> ids_;
  SpecialTokens special_;
};

}  // namespace plenum::data
