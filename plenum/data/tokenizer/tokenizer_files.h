#pragma once

#include <string>
#include <string_view>

#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::data {

/// The tokens of a vocab.txt, one per line, numbered from 0. Carriage returns before "\n" are no part of a
/// token; nothing else is trimmed. Empty lines at the end are no tokens. Throws UserError naming `source` on
/// text that is no UTF-8, on a token that stands twice and on a missing special token.
Vocabulary parse_vocab_txt(std::string_view text, const std::string& source);

/// A tokenizer.json of the WordPiece model with BertNormalizer and BertPreTokenizer. Throws UserError naming
/// `source` and the part that is not supported.
Tokenizer parse_tokenizer_json(std::string_view text, const std::string& source);

std::string print_vocab_txt(const Vocabulary& vocabulary);

/// What Hugging Face's Tokenizer.save writes for the same tokenizer, byte for byte.
std::string print_tokenizer_json(const Tokenizer& tokenizer);

/// States the rules as well: transformers rebuilds the normalizer from here, whatever tokenizer.json says.
std::string print_tokenizer_config(const Tokenizer& tokenizer, int model_max_length);

/// Writes vocab.txt, tokenizer.json and tokenizer_config.json into a directory, which is made if missing.
void write_tokenizer_files(const Tokenizer& tokenizer, const std::string& directory, int model_max_length);

}  // namespace plenum::data
