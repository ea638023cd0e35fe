#include "plenum/data/tasks/encoded_examples.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/data/tasks/windows.h"
#include "plenum/data/tokenizer/aligned_encoder.h"

namespace plenum::data {
namespace {

using describe::TaskKind;

constexpr std::int32_t kSpecialOfOne = 2;   // [CLS] text [SEP]
constexpr std::int32_t kSpecialOfPair = 3;  // [CLS] first [SEP] second [SEP]
constexpr std::int32_t kUsualStride = 128;

std::int32_t size_of(const std::vector<TokenId>& tokens) {
  return static_cast<std::int32_t>(tokens.size());
}

/// Encodes the examples of one file, one after the other.
class ExampleEncoder {
 public:
  ExampleEncoder(const TaskExamples& examples, const Tokenizer& tokenizer, std::int64_t max_length,
                 const TaskOptions& options)
      : examples_(examples),
        options_(options),
        special_(tokenizer.vocabulary().special()),
        max_length_(static_cast<std::int32_t>(max_length)),
        encoder_(tokenizer),
        aligned_encoder_(tokenizer) {
    base::check(max_length > kSpecialOfPair, "a sequence must have room for text: {} tokens", max_length);
    found_.parts_per_sequence =
        static_cast<std::int32_t>(std::max<std::int64_t>(examples.task.num_choices, 1));
  }

  EncodedExamples encode() && {
    for (std::size_t i = 0; i < examples_.examples.size(); ++i) {
      if (examples_.task.kind == TaskKind::TokenClassification) {
        encode_words(i);
      } else if (examples_.task.kind == TaskKind::QuestionAnswering) {
        encode_question(i);
      } else {
        encode_texts(i);
      }
    }
    return std::move(found_);
  }

 private:
  EncodedSequence& begin_sequence(std::size_t example) {
    return found_.sequences.emplace_back(EncodedSequence{.example = example,
                                                         .first_token = found_.tokens.size(),
                                                         .first_part = found_.part_lengths.size(),
                                                         .first_offset = found_.offsets.size(),
                                                         .first_word = found_.words.size()});
  }

  /// Adds [CLS] first [SEP] or [CLS] first [SEP] second [SEP] to the last sequence.
  void add_part(std::span<const TokenId> first, std::optional<std::span<const TokenId>> second) {
    std::vector<TokenId>& tokens = found_.tokens;
    const std::size_t begin = tokens.size();
    tokens.push_back(special_.cls);
    tokens.insert(tokens.end(), first.begin(), first.end());
    tokens.push_back(special_.sep);
    found_.first_segments.push_back(static_cast<std::int32_t>(tokens.size() - begin));
    if (second) {
      tokens.insert(tokens.end(), second->begin(), second->end());
      tokens.push_back(special_.sep);
    }
    const auto length = static_cast<std::int32_t>(tokens.size() - begin);
    found_.part_lengths.push_back(length);
    found_.sequences.back().num_tokens += length;
  }

  std::span<const TokenId> tokens_of(std::string_view text, std::vector<TokenId>& tokens) {
    tokens.clear();
    encoder_.encode(text, tokens);
    return tokens;
  }

  void encode_texts(std::size_t index) {
    const TaskExample& example = examples_.examples[index];
    begin_sequence(index);
    const std::uint64_t lost_before = found_.num_lost_tokens;
    tokens_of(example.text, first_);
    if (examples_.task.kind == TaskKind::MultipleChoice) {
      for (const std::string& choice : example.choices) {
        tokens_of(choice, second_);
        add_pair(example);
      }
    } else if (examples_.has_pairs) {
      tokens_of(example.pair, second_);
      add_pair(example);
    } else {
      const std::int32_t kept = std::min(size_of(first_), max_length_ - kSpecialOfOne);
      lose(size_of(first_) - kept, example);
      add_part(std::span(first_).first(static_cast<std::size_t>(kept)), std::nullopt);
    }
    if (found_.num_lost_tokens > lost_before) ++found_.num_truncated;
  }

  void add_pair(const TaskExample& example) {
    const auto [kept_first, kept_second] =
        truncate_longest_first(size_of(first_), size_of(second_), max_length_ - kSpecialOfPair);
    lose(size_of(first_) - kept_first + size_of(second_) - kept_second, example);
    add_part(std::span(first_).first(static_cast<std::size_t>(kept_first)),
             std::span(second_).first(static_cast<std::size_t>(kept_second)));
  }

  void lose(std::int32_t num_tokens, const TaskExample& example) {
    base::require(
        num_tokens == 0 || options_.too_long == TooLong::Truncate,
        "{}: the example has {} tokens more than sequences of {} have room for; shorten it, or give "
        "a greater --max-length or --too-long truncate",
        example.place, num_tokens, max_length_);
    found_.num_lost_tokens += static_cast<std::uint64_t>(num_tokens);
  }

  std::int32_t stride_for(std::int32_t room) const {
    const auto stride = static_cast<std::int32_t>(options_.stride.value_or(kUsualStride));
    return options_.stride ? stride : std::min(stride, room / 2);
  }

  void encode_words(std::size_t index) {
    const TaskExample& example = examples_.examples[index];
    first_.clear();
    first_tokens_.clear();
    for (const std::string& word : example.words) {
      first_tokens_.push_back(size_of(first_));
      encoder_.encode(word, first_);
      if (first_tokens_.back() == size_of(first_)) {
        first_.push_back(special_.unknown);
        ++found_.num_empty_words;
      }
    }
    const std::int32_t room = max_length_ - kSpecialOfOne;
    const std::int32_t stride = stride_for(room);
    base::require(stride < room, "--stride must be less than a window, {} tokens: {}", room, stride);
    const std::vector<TextWindow> windows = cut_windows(size_of(first_), room, stride);
    if (windows.size() > 1) ++found_.num_windowed;
    std::vector<std::vector<EncodedWord>> words_of_window(windows.size());
    for (std::size_t w = 0; w < first_tokens_.size(); ++w) {
      const std::size_t window = widest_context(first_tokens_[w], windows);
      words_of_window[window].push_back(
          {.position = 1 + first_tokens_[w] - windows[window].begin, .word = static_cast<std::int32_t>(w)});
    }
    for (std::size_t i = 0; i < windows.size(); ++i) {
      EncodedSequence& sequence = begin_window(index, i, windows[i]);
      sequence.num_words = static_cast<std::int32_t>(words_of_window[i].size());
      found_.words.insert(found_.words.end(), words_of_window[i].begin(), words_of_window[i].end());
      sequence.first_text = 1;
      add_part(text_in(windows[i], first_), std::nullopt);
    }
  }

  EncodedSequence& begin_window(std::size_t example, std::size_t window, const TextWindow& of_text) {
    EncodedSequence& sequence = begin_sequence(example);
    sequence.window = static_cast<std::int32_t>(window);
    sequence.window_begin = of_text.begin;
    sequence.num_text = of_text.end - of_text.begin;
    return sequence;
  }

  static std::span<const TokenId> text_in(const TextWindow& window, const std::vector<TokenId>& tokens) {
    return std::span(tokens).subspan(static_cast<std::size_t>(window.begin),
                                     static_cast<std::size_t>(window.end - window.begin));
  }

  /// The second text, with the places of its tokens. Questions on one context usually follow each other.
  void encode_context(const std::string& context) {
    if (context_ != nullptr && *context_ == context) return;
    context_ = &context;
    context_offset_ = found_.offsets.size();
    aligned_.clear();
    aligned_encoder_.encode(context, aligned_);
    second_.clear();
    for (const AlignedToken& token : aligned_) {
      second_.push_back(token.id);
      found_.offsets.push_back({.begin = token.begin, .end = token.end});
    }
  }

  void encode_question(std::size_t index) {
    const TaskExample& example = examples_.examples[index];
    tokens_of(example.text, first_);
    encode_context(example.pair);
    const std::int32_t room = max_length_ - kSpecialOfPair - size_of(first_);
    base::require(room >= 1,
                  "{}: the question has {} tokens, which leave no room for its context in sequences of {}; "
                  "shorten it, or give a greater --max-length",
                  example.place, first_.size(), max_length_);
    const std::int32_t stride = stride_for(room);
    base::require(stride < room,
                  "{}: the question has {} tokens, which leave {} of {} for its context, but --stride is {}; "
                  "give a lesser --stride or a greater --max-length",
                  example.place, first_.size(), room, max_length_, stride);
    const std::vector<TextWindow> windows = cut_windows(size_of(second_), room, stride);
    if (windows.size() > 1) ++found_.num_windowed;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      EncodedSequence& sequence = begin_window(index, i, windows[i]);
      sequence.first_offset = context_offset_ + static_cast<std::size_t>(windows[i].begin);
      sequence.first_text = size_of(first_) + 2;
      mark_answer(example, sequence);
      add_part(first_, text_in(windows[i], second_));
    }
  }

  /// As Hugging Face's run_qa: the first answer's tokens, if all of it lies in the window.
  void mark_answer(const TaskExample& example, EncodedSequence& sequence) const {
    if (example.answers.empty() || sequence.num_text == 0) return;
    const auto offsets =
        std::span(found_.offsets).subspan(sequence.first_offset, static_cast<std::size_t>(sequence.num_text));
    const auto begin = static_cast<std::int64_t>(example.answers.front().begin);
    const auto end = static_cast<std::int64_t>(example.answers.front().end());
    if (offsets.front().begin > begin || offsets.back().end < end) return;
    std::size_t first = 0;
    while (first + 1 < offsets.size() && offsets[first + 1].begin <= begin) ++first;
    std::size_t last = offsets.size() - 1;
    while (last > 0 && offsets[last - 1].end >= end) --last;
    sequence.answer_begin = sequence.first_text + static_cast<std::int32_t>(first);
    sequence.answer_end = sequence.first_text + static_cast<std::int32_t>(last);
  }

  const TaskExamples& examples_;
  const TaskOptions& options_;
  SpecialTokens special_;
  std::int32_t max_length_;
  Encoder encoder_;
  AlignedEncoder aligned_encoder_;
  EncodedExamples found_;
  const std::string* context_ = nullptr;    ///< whose tokens are in second_
  std::size_t context_offset_ = 0;          ///< of its first token, in the offsets
  std::vector<TokenId> first_;              ///< scratch: tokens of the first text
  std::vector<TokenId> second_;             ///< scratch: of the second
  std::vector<AlignedToken> aligned_;       ///< scratch
  std::vector<std::int32_t> first_tokens_;  ///< scratch: of each word
};

}  // namespace

EncodedExamples encode_examples(const TaskExamples& examples, const Tokenizer& tokenizer,
                                std::int64_t max_length, const TaskOptions& options) {
  return ExampleEncoder(examples, tokenizer, max_length, options).encode();
}

}  // namespace plenum::data
