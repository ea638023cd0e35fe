#pragma once

#include <span>
#include <string>
#include <vector>

namespace plenum::score {

/// The words of an answer, normalised so that what does not matter is gone; none: no answer.
using AnswerWords = std::vector<std::string>;

// How well an answer agrees with the best of those that are right, as SQuAD's script has it. Where none is
// given, the right one is none.

/// 1 if it equals one of them, else 0.
double exact_match(const AnswerWords& predicted, std::span<const AnswerWords> expected);

/// F1 of its words as a bag against those of the one with which that is greatest. No answer has 1 against
/// none and 0 against any other.
double word_f1(const AnswerWords& predicted, std::span<const AnswerWords> expected);

}  // namespace plenum::score
