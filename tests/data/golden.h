#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/data/tokenizer/normalizer.h"
#include "plenum/data/tokenizer/word_splitter.h"

#include "tests/support/read_golden.h"

namespace plenum::data {

using test::read_golden;

inline NormalizerRules golden_rules(const nlohmann::json& rules) {
  NormalizerRules result{.clean_text = rules.at("clean_text"),
                         .handle_chinese_chars = rules.at("handle_chinese_chars"),
                         .strip_accents = std::nullopt,
                         .lowercase = rules.at("lowercase")};
  if (!rules.at("strip_accents").is_null()) result.strip_accents = rules.at("strip_accents").get<bool>();
  return result;
}

/// Gathers what a splitter reports; a word that is too long is "<oversized>".
struct WordCollector {
  std::vector<std::string> words;

  void short_word(const WordKey& key) { words.emplace_back(key.bytes().data(), key.size()); }
  void long_word(std::string_view word) { words.emplace_back(word); }
  void oversized_word() { words.emplace_back("<oversized>"); }
};

}  // namespace plenum::data
