#include "plenum/data/tokenizer/aligned_encoder.h"
#include "plenum/data/tokenizer/tokenizer.h"

#include "tests/fuzz/fuzz.h"

namespace {

using plenum::data::TokenId;

plenum::data::Tokenizer make_tokenizer(bool lowercase) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (char c = 33; c < 127; ++c) {
    tokens.push_back(std::string(1, c));
    tokens.push_back("##" + std::string(1, c));
  }
  for (const char* token :
       {"the", "##ing", "caf\xc3\xa9", "cafe", "##\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80"}) {
    tokens.emplace_back(token);
  }
  return {plenum::data::Vocabulary(std::move(tokens), "fuzz"),
          {.strip_accents = std::nullopt, .lowercase = lowercase}};
}

}  // namespace

/// The same ids with places in the text.
void check_aligned(const plenum::data::Tokenizer& tokenizer, std::string_view text,
                   const std::vector<TokenId>& ids) {
  plenum::data::AlignedEncoder encoder(tokenizer);
  std::vector<plenum::data::AlignedToken> tokens;
  encoder.encode(text, tokens);
  if (tokens.size() != ids.size()) __builtin_trap();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const plenum::data::AlignedToken& token = tokens[i];
    if (token.id != ids[i] || token.begin < 0 || token.end > static_cast<std::int32_t>(text.size()))
      __builtin_trap();
  }
}

// Any bytes at all, cased and uncased: ids in range, and the same when encoded again with warm caches.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const plenum::data::Tokenizer tokenizers[] = {make_tokenizer(true), make_tokenizer(false)};
  static plenum::data::Encoder encoders[] = {plenum::data::Encoder(tokenizers[0]),
                                             plenum::data::Encoder(tokenizers[1])};
  for (int i = 0; i < 2; ++i) {
    std::vector<TokenId> first;
    std::vector<TokenId> second;
    encoders[i].encode(plenum::fuzz::as_text(data, size), first);
    encoders[i].encode(plenum::fuzz::as_text(data, size), second);
    if (first != second) __builtin_trap();
    for (const TokenId id : first) {
      if (id < 0 || static_cast<std::size_t>(id) >= tokenizers[i].vocabulary().size()) __builtin_trap();
    }
    check_aligned(tokenizers[i], plenum::fuzz::as_text(data, size), first);
    static_cast<void>(plenum::data::decode(tokenizers[i].vocabulary(), first));
  }
  return 0;
}
