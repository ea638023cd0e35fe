#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::data {

/// What one id of a TaskSequences is laid out as: a text or a pair, a window on one, or all pairs of an
/// example of multiple choice, end to end.
struct EncodedSequence {
  std::size_t example = 0;
  std::int32_t window = 0;        ///< which of the example's
  std::size_t first_token = 0;    ///< in EncodedExamples::tokens
  std::int32_t num_tokens = 0;    ///< special ones included
  std::size_t first_part = 0;     ///< in EncodedExamples::part_lengths
  std::int32_t first_text = 0;    ///< token with which the text that windows look at begins
  std::int32_t num_text = 0;      ///< tokens of that text
  std::size_t first_offset = 0;   ///< QuestionAnswering: of these tokens, in EncodedExamples::offsets
  std::int32_t window_begin = 0;  ///< token of the whole text that stands at first_text
  std::size_t first_word = 0;     ///< TokenClassification: labelled here, in EncodedExamples::words
  std::int32_t num_words = 0;
  std::int32_t answer_begin = 0;  ///< QuestionAnswering: tokens of the sequence; 0, [CLS]: no answer in it
  std::int32_t answer_end = 0;
};

/// Bytes of a text that a token stands for.
struct TokenOffsets {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  friend bool operator==(const TokenOffsets&, const TokenOffsets&) = default;
};

/// A word that a sequence has the label of.
struct EncodedWord {
  std::int32_t position = 0;  ///< of its first token in the sequence
  std::int32_t word = 0;      ///< of the example
};

/// The examples of a file as tokens, in its order.
struct EncodedExamples {
  std::int32_t parts_per_sequence = 1;
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> part_lengths;    ///< of every sequence of a model: parts_per_sequence for each
  std::vector<std::int32_t> first_segments;  ///< of each of those, tokens that the first segment has
  std::vector<TokenOffsets> offsets;
  std::vector<EncodedWord> words;
  std::vector<EncodedSequence> sequences;

  std::uint64_t num_truncated = 0;    ///< examples that lost tokens
  std::uint64_t num_lost_tokens = 0;  ///< of those
  std::uint64_t num_windowed = 0;     ///< examples that more than one window reads
  std::uint64_t num_empty_words = 0;  ///< of which normalisation leaves nothing: they are read as [UNK]
};

/// Throws UserError as TaskSequences does.
EncodedExamples encode_examples(const TaskExamples& examples, const Tokenizer& tokenizer,
                                std::int64_t max_length, const TaskOptions& options);

}  // namespace plenum::data
