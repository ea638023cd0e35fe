#include "plenum/data/tasks/task_sequences.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/describe/objective.h"
#include "plenum/io/checksum.h"

namespace plenum::data {
namespace {

using describe::GroupLabel;
using describe::TaskKind;

template <typename Value>
void add_to(io::Checksum& checksum, const std::vector<Value>& values) {
  const std::uint64_t size = values.size();
  checksum.update(std::as_bytes(std::span(&size, 1)));
  checksum.update(std::as_bytes(std::span(values)));
}

/// Training reads the tokens of the first; scores are of all.
void add_answers(io::Checksum& checksum, const std::vector<TaskExample>& examples) {
  for (const TaskExample& example : examples) {
    for (const AnswerSpan& answer : example.answers)
      checksum.update(fmt::format("{} {} ", answer.begin, answer.text));
    if (!example.answers.empty()) checksum.update(fmt::format("{} ", example.answers.size()));
  }
}

}  // namespace

TaskSequences::TaskSequences(const TaskExamples& examples, const Tokenizer& tokenizer,
                             std::int64_t max_length, const TaskOptions& options)
    : examples_(examples),
      vocabulary_(tokenizer.vocabulary()),
      max_length_(max_length),
      encoded_(encode_examples(examples, tokenizer, max_length, options)),
      order_(encoded_.sequences.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  const auto length_of = [&](std::size_t index) { return encoded_.sequences[index].num_tokens; };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return length_of(a) < length_of(b); });
  for (const std::int32_t length : encoded_.part_lengths)
    longest_sequence_ = std::max<std::int64_t>(longest_sequence_, length);
  const auto longest = static_cast<std::size_t>(length_of(order_.back()));
  histogram_.counts.resize(longest + 1);
  most_labels_.resize(longest + 1);
  for (std::uint64_t id = 0; id < order_.size(); ++id) {
    const auto length = static_cast<std::size_t>(this->length(id));
    ++histogram_.counts[length];
    most_labels_[length] = std::max(most_labels_[length], num_labels(id));
  }
  std::inclusive_scan(most_labels_.begin(), most_labels_.end(), most_labels_.begin(),
                      [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
}

std::int64_t TaskSequences::length(std::uint64_t id) const {
  return sequence(id).num_tokens;
}

std::span<const std::int32_t> TaskSequences::sequence_lengths(std::uint64_t id) const {
  return std::span(encoded_.part_lengths)
      .subspan(sequence(id).first_part, static_cast<std::size_t>(encoded_.parts_per_sequence));
}

void TaskSequences::append(std::uint64_t id, std::vector<TokenId>& tokens,
                           std::vector<std::uint8_t>& segments) const {
  const EncodedSequence& sequence = this->sequence(id);
  const auto begin = encoded_.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.first_token);
  tokens.insert(tokens.end(), begin, begin + sequence.num_tokens);
  const std::span<const std::int32_t> lengths = sequence_lengths(id);
  for (std::size_t part = 0; part < lengths.size(); ++part) {
    const auto first = static_cast<std::size_t>(encoded_.first_segments[sequence.first_part + part]);
    segments.insert(segments.end(), first, 0);
    segments.insert(segments.end(), static_cast<std::size_t>(lengths[part]) - first, 1);
  }
}

bool TaskSequences::is_random_next(std::uint64_t id) const {
  base::check(false, "sequences of a task have no next-sentence label: {}", id);
  return false;
}

std::int64_t TaskSequences::num_labels(std::uint64_t id) const {
  switch (examples_.task.kind) {
    case TaskKind::TokenClassification:
      return sequence(id).num_words;
    case TaskKind::QuestionAnswering:
      return length(id);
    case TaskKind::Classification:
    case TaskKind::Regression:
    case TaskKind::MultipleChoice:
      break;
  }
  return encoded_.parts_per_sequence;
}

std::int64_t TaskSequences::most_labels(std::int64_t length) const {
  return most_labels_[static_cast<std::size_t>(
      std::clamp<std::int64_t>(length, 0, std::ssize(most_labels_) - 1))];
}

void TaskSequences::append_labels(std::uint64_t id, std::vector<std::int32_t>& positions,
                                  std::vector<std::int32_t>& labels) const {
  const EncodedSequence& sequence = this->sequence(id);
  const TaskExample& example = examples_.examples[sequence.example];
  switch (examples_.task.kind) {
    case TaskKind::Classification:
      positions.push_back(0);
      labels.push_back(example.label);
      break;
    case TaskKind::Regression:
      positions.push_back(0);
      labels.push_back(std::bit_cast<std::int32_t>(static_cast<float>(example.number)));
      break;
    case TaskKind::TokenClassification:
      for (std::size_t i = 0; i < static_cast<std::size_t>(sequence.num_words); ++i) {
        const EncodedWord& word = encoded_.words[sequence.first_word + i];
        positions.push_back(word.position);
        labels.push_back(example.is_labelled ? example.tags[static_cast<std::size_t>(word.word)] : 0);
      }
      break;
    case TaskKind::QuestionAnswering:
      for (std::int32_t position = 0; position < sequence.num_tokens; ++position) {
        positions.push_back(position);
        labels.push_back((position == 0 ? GroupLabel::kFirst : 0) |
                         (position == sequence.answer_begin ? GroupLabel::answer(0) : 0) |
                         (position == sequence.answer_end ? GroupLabel::answer(1) : 0));
      }
      break;
    case TaskKind::MultipleChoice: {
      std::int32_t position = 0;
      std::int32_t choice = 0;
      for (const std::int32_t length : sequence_lengths(id)) {
        positions.push_back(position);
        labels.push_back((choice == 0 ? GroupLabel::kFirst : 0) |
                         (choice == example.label ? GroupLabel::answer(0) : 0));
        position += length;
        ++choice;
      }
      break;
    }
  }
}

std::uint64_t TaskSequences::fingerprint() const {
  io::Checksum checksum;
  checksum.update(describe::name_of(examples_.task.kind));
  for (const std::string& label : examples_.task.labels) {
    checksum.update(label);
    checksum.update(std::string_view("\0", 1));
  }
  add_to(checksum, encoded_.tokens);
  add_to(checksum, encoded_.part_lengths);
  add_to(checksum, encoded_.first_segments);
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> labels;
  for (std::uint64_t id = 0; id < num_sequences(); ++id) append_labels(id, positions, labels);
  add_to(checksum, positions);
  add_to(checksum, labels);
  add_answers(checksum, examples_.examples);
  return checksum.value();
}

std::vector<std::string> TaskSequences::remarks() const {
  std::vector<std::string> lines;
  const auto add = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    lines.push_back(examples_.path + ": " + fmt::format(format, std::forward<Args>(args)...));
  };
  const std::uint64_t num_examples = examples_.examples.size();
  if (encoded_.num_truncated > 0) {
    add("truncated {} of {} examples to {} tokens, which leaves out {} tokens",
        base::format_count(encoded_.num_truncated), base::format_count(num_examples), max_length_,
        base::format_count(encoded_.num_lost_tokens));
  }
  if (encoded_.num_windowed > 0) {
    add("{} of {} examples are longer than {} tokens and are read in windows: {} sequences",
        base::format_count(encoded_.num_windowed), base::format_count(num_examples), max_length_,
        base::format_count(num_sequences()));
  }
  if (encoded_.num_empty_words > 0) {
    add("{} words of which normalisation leaves nothing are read as [UNK]",
        base::format_count(encoded_.num_empty_words));
  }
  return lines;
}

}  // namespace plenum::data
