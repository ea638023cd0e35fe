#include "plenum/data/tasks/answer_words.h"

#include <string>
#include <utility>

#include "plenum/data/text/unicode.h"
#include "plenum/data/text/utf8.h"

namespace plenum::data {
namespace {

bool is_ascii_punctuation(char32_t code_point) {
  return code_point < 0x80 && is_punctuation(code_point);
}

/// As Python's str.split() has it.
bool parts_words(char32_t code_point) {
  return is_whitespace(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

/// Puts words together from characters, in which runs of letters and digits may be articles.
class AnswerSplitter {
 public:
  void take(char32_t code_point) {
    if (is_ascii_punctuation(code_point)) return;
    if (is_alphanumeric(code_point)) {
      append(code_point, run_);
      return;
    }
    end_run();
    if (parts_words(code_point)) {
      end_word();
    } else {
      append(code_point, word_);
    }
  }

  score::AnswerWords finish() && {
    end_run();
    end_word();
    return std::move(words_);
  }

 private:
  static void append(char32_t code_point, std::string& text) {
    char bytes[4];
    text.append(bytes, encode_utf8(code_point, bytes));
  }

  /// An article leaves a space in its place.
  void end_run() {
    if (run_ == "a" || run_ == "an" || run_ == "the") {
      end_word();
    } else {
      word_ += run_;
    }
    run_.clear();
  }

  void end_word() {
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }

  score::AnswerWords words_;
  std::string word_;
  std::string run_;  ///< letters and digits at the end of the word
};

}  // namespace

score::AnswerWords answer_words(std::string_view answer) {
  AnswerSplitter splitter;
  const char* const end = answer.data() + answer.size();
  for (const char* at = answer.data(); at != end;) {
    const DecodedCharacter character = decode_utf8(at, end);
    for (const char32_t lowered : lowercase(character.code_point)) splitter.take(lowered);
    at += character.length;
  }
  return std::move(splitter).finish();
}

}  // namespace plenum::data
