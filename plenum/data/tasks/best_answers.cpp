#include "plenum/data/tasks/best_answers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "plenum/data/text/utf8.h"

namespace plenum::data {
namespace {

constexpr std::size_t kColumns = 2;  // where an answer begins, and where it ends

/// A part of a context that may be the answer.
struct AnswerCandidate {
  double score = 0;  ///< sum of two logits
  std::size_t begin = 0;
  std::size_t end = 0;  ///< in bytes; not behind the beginning: no answer
};

/// What is known of one question so far.
struct QuestionAnswers {
  std::vector<AnswerCandidate> candidates;
  std::optional<double> no_answer;  ///< the least sum at [CLS]
};

/// The positions with the greatest logits of a column, greatest first, the first of equals first.
std::vector<std::int32_t> best_positions(std::span<const float> logits, std::size_t column,
                                         std::int64_t count) {
  std::vector<std::int32_t> positions(logits.size() / kColumns);
  std::iota(positions.begin(), positions.end(), 0);
  const auto logit = [&](std::int32_t position) {
    return logits[static_cast<std::size_t>(position) * kColumns + column];
  };
  const auto num_best = std::min<std::ptrdiff_t>(count, std::ssize(positions));
  std::partial_sort(
      positions.begin(), positions.begin() + num_best, positions.end(),
      [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  positions.resize(static_cast<std::size_t>(num_best));
  return positions;
}

void add_window(const TaskLogits& logits, std::uint64_t id, const TaskOptions& options,
                QuestionAnswers& answers) {
  const EncodedSequence& sequence = logits.sequences().sequence(id);
  const std::span<const float> of_window = logits.of(id);
  const double at_cls = double{of_window[0]} + of_window[1];
  answers.no_answer = std::min(answers.no_answer.value_or(at_cls), at_cls);
  const auto is_text = [&](std::int32_t position) {
    return position >= sequence.first_text && position < sequence.first_text + sequence.num_text;
  };
  const auto offsets_of = [&](std::int32_t position) {
    return logits.sequences()
        .encoded()
        .offsets[sequence.first_offset + static_cast<std::size_t>(position - sequence.first_text)];
  };
  const std::vector<std::int32_t> ends = best_positions(of_window, 1, options.num_best_answers);
  for (const std::int32_t first : best_positions(of_window, 0, options.num_best_answers)) {
    for (const std::int32_t last : ends) {
      if (!is_text(first) || !is_text(last) || last < first) continue;
      if (last - first + 1 > options.max_answer_length) continue;
      const double score = double{of_window[static_cast<std::size_t>(first) * kColumns]} +
                           of_window[static_cast<std::size_t>(last) * kColumns + 1];
      answers.candidates.push_back({.score = score,
                                    .begin = static_cast<std::size_t>(offsets_of(first).begin),
                                    .end = static_cast<std::size_t>(offsets_of(last).end)});
    }
  }
}

/// The share of one score in the softmax of all.
double share_of(double score, std::span<const AnswerCandidate> candidates) {
  double sum = 0;
  for (const AnswerCandidate& candidate : candidates) sum += std::exp(candidate.score - score);
  return sum == 0 ? 0 : 1 / sum;
}

void choose_answer(QuestionAnswers& answers, bool may_lack_answer, std::int64_t num_best,
                   const TaskExample& example, Prediction& prediction) {
  std::vector<AnswerCandidate>& candidates = answers.candidates;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const AnswerCandidate& a, const AnswerCandidate& b) { return a.score > b.score; });
  if (std::cmp_greater(candidates.size(), num_best)) candidates.resize(static_cast<std::size_t>(num_best));
  const bool has_answer = !candidates.empty();
  const AnswerCandidate best = has_answer ? candidates.front() : AnswerCandidate{};
  if (may_lack_answer) candidates.push_back({.score = *answers.no_answer});
  if (!has_answer || (may_lack_answer && *answers.no_answer > best.score)) {
    prediction.score = may_lack_answer ? share_of(*answers.no_answer, candidates) : 0;
    return;
  }
  prediction.span = {.begin = best.begin, .text = example.pair.substr(best.begin, best.end - best.begin)};
  prediction.answer = prediction.span.text;
  prediction.score = share_of(best.score, candidates);
}

}  // namespace

void find_answers(const TaskLogits& logits, const TaskOptions& options,
                  std::vector<Prediction>& predictions) {
  const TaskSequences& sequences = logits.sequences();
  // Windows of a question in their order, so that the first of equals is the same whatever their lengths.
  std::vector<std::vector<std::uint64_t>> windows(predictions.size());
  for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id)
    windows[sequences.sequence(id).example].push_back(id);
  for (std::size_t example = 0; example < predictions.size(); ++example) {
    std::sort(windows[example].begin(), windows[example].end(), [&](std::uint64_t a, std::uint64_t b) {
      return sequences.sequence(a).window < sequences.sequence(b).window;
    });
    QuestionAnswers answers;
    for (const std::uint64_t id : windows[example]) add_window(logits, id, options, answers);
    choose_answer(answers, sequences.examples().may_lack_answer, options.num_best_answers,
                  sequences.examples().examples[example], predictions[example]);
  }
}

std::int64_t characters_before(std::string_view text, std::size_t byte) {
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return std::ranges::count_if(text.substr(0, byte), begins_character);
}

}  // namespace plenum::data
