#pragma once

#include <string_view>

#include "plenum/score/answers.h"

namespace plenum::data {

/// The words of an answer as SQuAD's script normalises them: in lower case, without ASCII punctuation and the
/// articles a, an and the.
score::AnswerWords answer_words(std::string_view answer);

}  // namespace plenum::data
