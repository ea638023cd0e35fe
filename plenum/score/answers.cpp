#include "plenum/score/answers.h"

#include <algorithm>
#include <map>

namespace plenum::score {
namespace {

double f1_of_words(const AnswerWords& predicted, const AnswerWords& expected) {
  if (predicted.empty() || expected.empty()) return predicted.empty() == expected.empty() ? 1 : 0;
  std::map<std::string, int> left;
  for (const std::string& word : expected) ++left[word];
  double common = 0;
  for (const std::string& word : predicted) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++common;
  }
  return 2 * common / static_cast<double>(predicted.size() + expected.size());
}

}  // namespace

double exact_match(const AnswerWords& predicted, std::span<const AnswerWords> expected) {
  if (expected.empty()) return predicted.empty() ? 1 : 0;
  return std::ranges::find(expected, predicted) != expected.end() ? 1 : 0;
}

double word_f1(const AnswerWords& predicted, std::span<const AnswerWords> expected) {
  if (expected.empty()) return predicted.empty() ? 1 : 0;
  double best = 0;
  for (const AnswerWords& answer : expected) best = std::max(best, f1_of_words(predicted, answer));
  return best;
}

}  // namespace plenum::score
