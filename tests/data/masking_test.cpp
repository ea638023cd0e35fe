#include "plenum/data/batches/masking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;

constexpr TokenId kFirstWord = 5;

/// Special tokens at 0 ... 4; of the others, every fourth continues a word.
MaskingVocabulary vocabulary_of(std::int64_t size) {
  MaskingVocabulary vocabulary;
  vocabulary.size = size;
  vocabulary.special = {.pad = 0, .unknown = 1, .cls = 2, .sep = 3, .mask = 4};
  for (std::int64_t id = 0; id < size; ++id) vocabulary.continues.push_back(id >= kFirstWord && id % 4 == 0);
  return vocabulary;
}

struct Sequence {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> segments;
};

/// [CLS] A [SEP], or [CLS] A [SEP] B [SEP], with tokens that are a function of `sample`.
Sequence sequence_of(std::uint64_t sample, std::int64_t length_a, std::int64_t length_b = 0) {
  const base::RandomFunction random(1, base::Purpose::Holdout);
  Sequence sequence;
  const auto add = [&](TokenId id, std::uint8_t segment) {
    sequence.ids.push_back(id);
    sequence.segments.push_back(segment);
  };
  const auto word = [&] {
    const auto position = static_cast<std::uint32_t>(sequence.ids.size());
    return kFirstWord + static_cast<TokenId>(base::to_range(random(sample, position), 95));
  };
  add(2, 0);
  for (std::int64_t i = 0; i < length_a; ++i) add(word(), 0);
  add(3, 0);
  for (std::int64_t i = 0; i < length_b; ++i) add(word(), 1);
  if (length_b > 0) add(3, 1);
  return sequence;
}

struct Masked {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> positions;
  std::vector<TokenId> labels;

  friend bool operator==(const Masked&, const Masked&) = default;
};

Masked apply(const Masking& masking, std::uint64_t sample, const Sequence& sequence) {
  Masked masked{.ids = sequence.ids, .positions = {}, .labels = {}};
  masking.mask(sample, masked.ids, sequence.segments, masked.positions, masked.labels);
  return masked;
}

TEST(MaskedCount, IsTheRoundedShareOfTheLength) {
  EXPECT_EQ(masked_count(512, 0.15), 77);
  EXPECT_EQ(masked_count(128, 0.15), 19);
  EXPECT_EQ(masked_count(6, 0.15), 1);
  EXPECT_EQ(masked_count(3, 0.15), 1);
  EXPECT_EQ(masked_count(2, 0.15), 0);
  EXPECT_EQ(masked_count(512, 1.0), 509);
}

TEST(MaskedCount, NeverFallsAsTheLengthGrows) {
  for (const double rate : {0.01, 0.15, 0.3, 0.77, 1.0}) {
    for (std::int64_t length = 1; length < 600; ++length)
      EXPECT_LE(masked_count(length - 1, rate), masked_count(length, rate)) << length << " " << rate;
  }
}

TEST(Masking, MasksExactlyTheCountAndNoSpecialToken) {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  for (const MaskUnit unit : {MaskUnit::Token, MaskUnit::Word}) {
    for (const double rate : {0.15, 0.5, 1.0}) {
      const Masking masking({.rate = rate, .unit = unit, .split = {}}, vocabulary, 1, 2);
      for (std::uint64_t sample = 0; sample < 120; ++sample) {
        const auto length_a = static_cast<std::int64_t>(sample % 30);
        const auto length_b = static_cast<std::int64_t>(sample % 7);
        const Sequence sequence = sequence_of(sample, length_a, length_b);
        const Masked masked = apply(masking, sample, sequence);
        const auto length = static_cast<std::int64_t>(sequence.ids.size());
        ASSERT_EQ(static_cast<std::int64_t>(masked.positions.size()), masked_count(length, rate));
        ASSERT_EQ(masked.positions.size(), masked.labels.size());
        EXPECT_TRUE(std::is_sorted(masked.positions.begin(), masked.positions.end()));
        const std::set<std::int32_t> chosen(masked.positions.begin(), masked.positions.end());
        EXPECT_EQ(chosen.size(), masked.positions.size());
        std::size_t next = 0;
        for (std::size_t i = 0; i < sequence.ids.size(); ++i) {
          if (!chosen.contains(static_cast<std::int32_t>(i))) {
            EXPECT_EQ(masked.ids[i], sequence.ids[i]);
          } else {
            EXPECT_GE(sequence.ids[i], kFirstWord);
            EXPECT_EQ(masked.labels[next++], sequence.ids[i]);
          }
        }
      }
    }
  }
}

TEST(Masking, LeavesWhatLooksSpecialInsideASegmentToTheHash) {
  // Text may spell [SEP]: where special tokens lie follows from the segments, so the count stays exact.
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  const Masking masking({.rate = 1.0, .unit = MaskUnit::Token, .split = {}}, vocabulary, 1, 0);
  Sequence sequence = sequence_of(0, 6, 3);
  std::fill(sequence.ids.begin(), sequence.ids.end(), vocabulary.special.sep);
  EXPECT_EQ(apply(masking, 0, sequence).positions.size(), 9U);
}

TEST(Masking, DependsOnSeedEpochAndSampleOnly) {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  const Sequence sequence = sequence_of(3, 100);
  const auto masked = [&](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
    return apply(Masking({}, vocabulary, seed, epoch), sample, sequence);
  };
  EXPECT_EQ(masked(1, 0, 5), masked(1, 0, 5));
  EXPECT_NE(masked(1, 0, 5).positions, masked(2, 0, 5).positions);
  EXPECT_NE(masked(1, 0, 5).positions, masked(1, 1, 5).positions);
  EXPECT_NE(masked(1, 0, 5).positions, masked(1, 0, 6).positions);
}

TEST(Masking, ChoosesEveryPositionEquallyOften) {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  const Masking masking({}, vocabulary, 1, 0);
  const Sequence sequence = sequence_of(0, 38);
  std::vector<int> counts(sequence.ids.size());
  constexpr int kSamples = 4000;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    for (const std::int32_t position : apply(masking, sample, sequence).positions)
      ++counts[static_cast<std::size_t>(position)];
  }
  const double probability = 6.0 / 38;
  const double deviation = std::sqrt(kSamples * probability * (1 - probability));
  for (std::size_t i = 1; i + 1 < counts.size(); ++i)
    EXPECT_NEAR(counts[i], kSamples * probability, 5 * deviation);
}

TEST(Masking, KeepsToTheSplit) {
  const MaskingVocabulary vocabulary = vocabulary_of(1000);
  const Sequence sequence = sequence_of(0, 500);
  for (const MaskSplit& split :
       {MaskSplit{}, MaskSplit{100, 0, 0}, MaskSplit{0, 100, 0}, MaskSplit{0, 0, 100}}) {
    const Masking masking({.rate = 0.5, .unit = MaskUnit::Token, .split = split}, vocabulary, 1, 0);
    double num_mask = 0;
    double num_kept = 0;
    double num_random = 0;
    for (std::uint64_t sample = 0; sample < 100; ++sample) {
      const Masked masked = apply(masking, sample, sequence);
      for (std::size_t i = 0; i < masked.positions.size(); ++i) {
        const TokenId id = masked.ids[static_cast<std::size_t>(masked.positions[i])];
        if (id == vocabulary.special.mask) {
          ++num_mask;
        } else if (id == masked.labels[i]) {
          ++num_kept;
        } else {
          ++num_random;
          EXPECT_GE(id, kFirstWord);
          EXPECT_LT(id, 1000);
        }
      }
    }
    const double total = num_mask + num_kept + num_random;
    const auto expect_share = [&](double count, double percent, double chance_of_equal) {
      const double share = percent / 100;
      const double tolerance = 5 * std::sqrt(share * (1 - share) / total) + chance_of_equal * 2;
      EXPECT_NEAR(count / total, share, tolerance);
    };
    const double chance_of_equal = split.random / 100.0 / 995;
    expect_share(num_mask, split.mask, 0);
    expect_share(num_random, split.random, chance_of_equal);
    expect_share(num_kept, split.keep, chance_of_equal);
  }
}

TEST(Masking, DrawsRandomTokensFromTheWholeVocabularyButSpecialOnes) {
  MaskingVocabulary vocabulary = vocabulary_of(12);
  vocabulary.special = {.pad = 0, .unknown = 11, .cls = 3, .sep = 4, .mask = 7};
  const Masking masking({.rate = 1.0, .unit = MaskUnit::Token, .split = {0, 100, 0}}, vocabulary, 1, 0);
  Sequence sequence = sequence_of(0, 200);
  std::fill(sequence.ids.begin(), sequence.ids.end(), 1);
  const Masked masked = apply(masking, 0, sequence);
  const std::set<TokenId> drawn(masked.ids.begin(), masked.ids.end());
  EXPECT_EQ(drawn, (std::set<TokenId>{1, 2, 5, 6, 8, 9, 10}));
}

TEST(Masking, MasksWholeWords) {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  const Masking masking({.rate = 0.3, .unit = MaskUnit::Word, .split = {100, 0, 0}}, vocabulary, 1, 0);
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const Sequence sequence = sequence_of(sample, 80, 40);
    const Masked masked = apply(masking, sample, sequence);
    const std::set<std::int32_t> chosen(masked.positions.begin(), masked.positions.end());
    int num_cut = 0;
    for (std::size_t i = 1; i + 1 < sequence.ids.size(); ++i) {
      const bool continues = vocabulary.continues[static_cast<std::size_t>(sequence.ids[i])] &&
                             sequence.ids[i - 1] >= kFirstWord;
      if (!continues) continue;
      const auto position = static_cast<std::int32_t>(i);
      if (chosen.contains(position) != chosen.contains(position - 1)) ++num_cut;
      // A word that is cut is cut from behind.
      EXPECT_TRUE(!chosen.contains(position) || chosen.contains(position - 1));
    }
    EXPECT_LE(num_cut, 1);
  }
}

/// [CLS] words [SEP], where a word of n pieces is a token and n - 1 that continue it.
Sequence words_of(const std::vector<int>& pieces) {
  Sequence sequence{.ids = {2}, .segments = {}};
  for (const int count : pieces) {
    sequence.ids.push_back(9);
    sequence.ids.insert(sequence.ids.end(), static_cast<std::size_t>(count - 1), 8);
  }
  sequence.ids.push_back(3);
  sequence.segments.assign(sequence.ids.size(), 0);
  return sequence;
}

TEST(Masking, CutsTheWordThatWouldBeTooMany) {
  // Three tokens of words of 18 pieces are to be masked: the first three of one or the other.
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  const Masking masking({.rate = 0.08, .unit = MaskUnit::Word, .split = {}}, vocabulary, 1, 0);
  std::set<std::vector<std::int32_t>> seen;
  for (std::uint64_t sample = 0; sample < 20; ++sample)
    seen.insert(apply(masking, sample, words_of({18, 18})).positions);
  EXPECT_EQ(seen, (std::set<std::vector<std::int32_t>>{{1, 2, 3}, {19, 20, 21}}));
}

TEST(Masking, BeginsLongWordsAsOftenAsShortOnes) {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  const Masking masking({.rate = 0.15, .unit = MaskUnit::Word, .split = {}}, vocabulary, 1, 0);
  constexpr int kSamples = 4000;
  // Sequences of 9, 16 and 23 tokens, of which one, two and three are masked.
  for (const int num_long : {1, 2, 3}) {
    std::vector<int> pieces;
    for (int i = 0; i < num_long; ++i) pieces.insert(pieces.end(), {4, 1, 1, 1});
    const Sequence sequence = words_of(pieces);
    ASSERT_EQ(masked_count(static_cast<std::int64_t>(sequence.ids.size()), 0.15), num_long);
    std::map<int, int> begun;  // by pieces of the word
    for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
      const Masked masked = apply(masking, sample, sequence);
      const std::set<std::int32_t> chosen(masked.positions.begin(), masked.positions.end());
      std::int32_t position = 1;
      for (const int count : pieces) {
        if (chosen.contains(position)) ++begun[count];
        position += count;
      }
    }
    const double rate_long = static_cast<double>(begun[4]) / (kSamples * num_long);
    const double rate_short = static_cast<double>(begun[1]) / (kSamples * num_long * 3);
    EXPECT_NEAR(rate_long / rate_short, 1, 0.2) << num_long << " long words: " << rate_long;
  }
}

TEST(MaskSplit, ReadsThreePercentages) {
  EXPECT_EQ(parse_mask_split("80/10/10", "mask-split"), MaskSplit{});
  EXPECT_EQ(parse_mask_split("100/0/0", "mask-split"), (MaskSplit{100, 0, 0}));
  for (const char* text :
       {"", "80", "80/10", "80/10/11", "80/10/10/0", "80/-10/30", "a/b/c", "80//20", "+80/10/10"}) {
    EXPECT_THAT(test::user_error_of([&] { parse_mask_split(text, "mask-split"); }),
                HasSubstr("mask-split must be three percentages that make 100"))
        << text;
  }
}

TEST(MaskingVocabulary, KnowsPiecesThatContinueAWord) {
  const Vocabulary vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a"}, "test");
  const MaskingVocabulary masking(vocabulary);
  EXPECT_EQ(masking.size, 7);
  EXPECT_EQ(masking.special.mask, 4);
  EXPECT_EQ(masking.continues, (std::vector<bool>{false, false, false, false, false, false, true}));
}

TEST(Masking, RefusesWhatCannotBeMasked) {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  EXPECT_THAT(test::user_error_of([&] { Masking({.rate = 0}, vocabulary, 1, 0); }), HasSubstr("mask rate"));
  const MaskingVocabulary only_special = vocabulary_of(5);
  EXPECT_THAT(test::user_error_of([&] { Masking({}, only_special, 1, 0); }), HasSubstr("no words"));
}

}  // namespace
}  // namespace plenum::data
