#include "plenum/data/corpus/sequence_builder.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::data {

/// Consecutive tokens of the token file.
struct SequenceBuilder::Segment {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
};

/// The random numbers of one document, numbered in the order in which its construction asks for them.
class SequenceBuilder::Draws {
 public:
  Draws(const base::RandomFunction& random, std::uint64_t document, Split split)
      : random_(random), document_(document), split_(static_cast<std::uint32_t>(split)) {}

  /// Uniform in [low, high].
  std::uint64_t integer(std::uint64_t low, std::uint64_t high) {
    return low + base::to_range(next(), high - low + 1);
  }
  bool happens(double probability) { return base::to_unit_interval(next()) < probability; }
  /// A fair coin; 32 of them cost one draw.
  bool coin() {
    if (num_coins_ == 0) {
      coins_ = next()[0];
      num_coins_ = 32;
    }
    const bool heads = (coins_ & 1) != 0;
    coins_ >>= 1;
    --num_coins_;
    return heads;
  }

 private:
  base::PhiloxCounter next() {
    const std::uint64_t draw = num_draws_++;
    return random_(document_, static_cast<std::uint32_t>(draw), split_,
                   static_cast<std::uint32_t>(draw >> 32));
  }

  const base::RandomFunction& random_;
  std::uint64_t document_;
  std::uint32_t split_;
  std::uint64_t num_draws_ = 0;
  std::uint32_t coins_ = 0;
  int num_coins_ = 0;
};

void require_documents(Objective objective, std::uint64_t num_documents, Split split) {
  base::require(
      objective != Objective::WithNextSentence || num_documents != 1,
      "next-sentence pairs need at least two documents, but the {} part has one; divide the text into "
      "more (--documents), or choose --objective mlm",
      name_of(split));
}

SequenceBuilder::SequenceBuilder(const IndexedTokens& tokens, const SequenceOptions& options, Split split)
    : tokens_(tokens), options_(options), split_(split), random_(options.seed, base::Purpose::SentencePairs) {
  const bool pairs = options.objective == Objective::WithNextSentence;
  base::check(options.max_length >= (pairs ? 5 : 3), "no token fits: max_length={}", options.max_length);
  require_documents(options.objective, tokens.num_documents(), split);
}

void SequenceBuilder::build(std::uint64_t document, const Sink& sink, LostTokens& lost) const {
  if (options_.objective == Objective::WithNextSentence) {
    build_pairs(document, sink, lost);
  } else if (options_.cut == CutRule::Token) {
    build_tokens(document, sink, lost);
  } else {
    build_sentences(document, sink, lost);
  }
}

std::uint64_t SequenceBuilder::end_of_document(std::uint64_t document) const {
  const std::uint64_t last = tokens_.first_sentence(document + 1) - 1;
  return tokens_.first_token(last) + tokens_.sentence_length(last);
}

SequenceBuilder::Segment SequenceBuilder::segment(std::uint64_t first_sentence,
                                                  std::uint64_t end_sentence) const {
  const std::uint64_t first = tokens_.first_token(first_sentence);
  const std::uint64_t last = end_sentence - 1;
  return {first, tokens_.first_token(last) + tokens_.sentence_length(last) - first};
}

void SequenceBuilder::build_tokens(std::uint64_t document, const Sink& sink, LostTokens& lost) const {
  const auto capacity = static_cast<std::uint64_t>(options_.max_length) - 2;
  const std::uint64_t end = end_of_document(document);
  for (std::uint64_t first = tokens_.first_token(tokens_.first_sentence(document)); first < end;) {
    const std::uint64_t length = std::min(capacity, end - first);
    sink({.first_a = first, .length_a = static_cast<std::uint32_t>(length)});
    first += length;
    if (options_.only_first) {
      lost.behind_first_sequence += end - first;
      return;
    }
  }
}

void SequenceBuilder::build_sentences(std::uint64_t document, const Sink& sink, LostTokens& lost) const {
  const auto capacity = static_cast<std::uint64_t>(options_.max_length) - 2;
  const std::uint64_t end_sentence = tokens_.first_sentence(document + 1);
  std::uint64_t sentence = tokens_.first_sentence(document);
  Segment open{.first = tokens_.first_token(sentence), .length = 0};
  bool stopped = false;
  const auto emit = [&](std::uint64_t length) {
    sink({.first_a = open.first, .length_a = static_cast<std::uint32_t>(length)});
    open = {.first = open.first + length, .length = open.length - length};
    stopped = options_.only_first;
  };
  for (; sentence < end_sentence && !stopped; ++sentence) {
    const std::uint64_t length = tokens_.sentence_length(sentence);
    if (open.length > 0 && open.length + length > capacity) emit(open.length);
    open.length += length;
    while (open.length > capacity && !stopped) emit(capacity);
  }
  if (open.length > 0 && !stopped) emit(open.length);
  if (stopped) lost.behind_first_sequence += end_of_document(document) - open.first;
}

SequenceBuilder::Segment SequenceBuilder::random_partner(std::uint64_t document, std::uint64_t target,
                                                         Draws& draws) const {
  // Uniform over the other documents, which is what drawing again until it is another one comes to.
  std::uint64_t other = draws.integer(0, tokens_.num_documents() - 2);
  if (other >= document) ++other;
  const std::uint64_t end = tokens_.first_sentence(other + 1);
  const std::uint64_t begin = draws.integer(tokens_.first_sentence(other), end - 1);
  std::uint64_t behind = begin;
  std::uint64_t length = 0;
  while (behind < end && (length == 0 || length < target)) length += tokens_.sentence_length(behind++);
  return segment(begin, behind);
}

void SequenceBuilder::build_pairs(std::uint64_t document, const Sink& sink, LostTokens& lost) const {
  const auto capacity = static_cast<std::uint64_t>(options_.max_length) - 3;
  const std::uint64_t end_sentence = tokens_.first_sentence(document + 1);
  Draws draws(random_, document, split_);
  const std::uint64_t target =
      draws.happens(options_.short_sequence_probability) ? draws.integer(2, capacity) : capacity;

  for (std::uint64_t begin = tokens_.first_sentence(document); begin < end_sentence;) {
    std::uint64_t end = begin;
    for (std::uint64_t length = 0; end < end_sentence && length < target;)
      length += tokens_.sentence_length(end++);
    const std::uint64_t num_sentences = end - begin;
    const std::uint64_t end_of_a = begin + (num_sentences >= 2 ? draws.integer(1, num_sentences - 1) : 1);
    Segment a = segment(begin, end_of_a);
    const bool random_next = num_sentences == 1 || draws.happens(0.5);
    Segment b = random_next ? random_partner(document, target - std::min(target, a.length), draws)
                            : segment(end_of_a, end);
    while (a.length + b.length > capacity) {
      Segment& longer = a.length > b.length ? a : b;
      if (draws.coin()) ++longer.first;
      --longer.length;
      if (&longer == &a || !random_next) ++lost.pair_truncation;
    }
    sink({.first_a = a.first,
          .length_a = static_cast<std::uint32_t>(a.length),
          .length_b = static_cast<std::uint32_t>(b.length),
          .first_b = b.first,
          .flags = random_next ? SequenceRecord::kRandomNext : 0});
    begin = random_next ? end_of_a : end;
    if (options_.only_first) {
      if (begin < end_sentence)
        lost.behind_first_sequence += end_of_document(document) - tokens_.first_token(begin);
      return;
    }
  }
}

}  // namespace plenum::data
