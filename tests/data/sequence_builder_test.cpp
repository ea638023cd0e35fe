#include "plenum/data/corpus/sequence_builder.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "plenum/data/corpus/sequence_index.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

using Lengths = std::vector<std::vector<std::uint32_t>>;  // of the sentences of each document

/// A token file whose token i is i modulo 2^16.
class Corpus {
 public:
  explicit Corpus(const Lengths& documents) {
    std::string lengths;
    std::string ends;
    std::string tokens;
    std::uint64_t num_sentences = 0;
    std::uint16_t token = 0;
    const auto append = [](std::string& bytes, const auto& value) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    for (const auto& document : documents) {
      for (const std::uint32_t length : document) {
        append(lengths, length);
        for (std::uint32_t i = 0; i < length; ++i) append(tokens, token++);
      }
      num_sentences += document.size();
      append(ends, num_sentences);
    }
    directory_.write("idx", std::string(kTokenIndexHeaderBytes, '\0') + lengths);
    directory_.write("ends", ends);
    directory_.write("bin", tokens);
    complete_token_index(directory_ / "idx", directory_ / "ends", TokenWidth::Two);
  }
  IndexedTokens open() const { return IndexedTokens(directory_ / "bin", directory_ / "idx"); }
  const test::TemporaryDirectory& directory() const { return directory_; }

 private:
  test::TemporaryDirectory directory_;
};

struct Built {
  std::vector<SequenceRecord> records;
  LostTokens lost;
};

Built build(const IndexedTokens& tokens, const SequenceOptions& options, std::uint64_t document) {
  Built built;
  const SequenceBuilder builder(tokens, options, Split::Train);
  builder.build(
      document, [&](const SequenceRecord& record) { built.records.push_back(record); }, built.lost);
  return built;
}

std::vector<std::uint32_t> lengths_of(const Built& built) {
  std::vector<std::uint32_t> lengths;
  for (const SequenceRecord& record : built.records) lengths.push_back(record.length_a);
  return lengths;
}

Lengths random_lengths(std::mt19937& random, std::uint32_t longest) {
  Lengths documents(2 + random() % 30);
  for (auto& document : documents) {
    document.resize(1 + random() % 20);
    for (std::uint32_t& length : document)
      length = 1 + random() % (random() % 20 == 0 ? 5 * longest : longest);
  }
  return documents;
}

TEST(SequenceBuilder, GathersWholeSentencesAndSplitsOnlyThoseThatAreTooLong) {
  const Corpus corpus({{4, 4, 3, 9, 25, 2, 2}});
  const Built built = build(corpus.open(), {.max_length = 12}, 0);  // 10 tokens of text
  // 25 = 10 + 10 + 5, and the 5 go on with 2 + 2.
  EXPECT_EQ(lengths_of(built), (std::vector<std::uint32_t>{8, 3, 9, 10, 10, 9}));
}

TEST(SequenceBuilder, FillsSequencesToTheBrimWhenAsked) {
  const Corpus corpus({{4, 4, 3, 9, 3}, {1}});
  const SequenceOptions options{.max_length = 12, .cut = CutRule::Token};
  EXPECT_EQ(lengths_of(build(corpus.open(), options, 0)), (std::vector<std::uint32_t>{10, 10, 3}));
  EXPECT_EQ(lengths_of(build(corpus.open(), options, 1)), (std::vector<std::uint32_t>{1}));
}

TEST(SequenceBuilder, PutsEveryTokenOfADocumentIntoOneSequenceAndNeverMixesDocuments) {
  std::mt19937 random(31);
  for (int round = 0; round < 60; ++round) {
    const Lengths lengths = random_lengths(random, 30);
    const Corpus corpus(lengths);
    const IndexedTokens tokens = corpus.open();
    const SequenceOptions options{.max_length = 3 + static_cast<std::int64_t>(random() % 60),
                                  .cut = round % 2 == 0 ? CutRule::Sentence : CutRule::Token};
    std::uint64_t next = 0;
    for (std::uint64_t document = 0; document < lengths.size(); ++document) {
      const Built built = build(tokens, options, document);
      for (const SequenceRecord& record : built.records) {
        ASSERT_EQ(record.first_a, next);
        ASSERT_GT(record.length_a, 0U);
        ASSERT_LE(record.length(), static_cast<std::uint64_t>(options.max_length));
        next += record.length_a;
      }
      ASSERT_EQ(next, document + 1 < lengths.size() ? tokens.first_token(tokens.first_sentence(document + 1))
                                                    : tokens.num_tokens());
      ASSERT_EQ(built.lost.behind_first_sequence, 0U);
    }
  }
}

TEST(SequenceBuilder, KeepsTheFirstSequenceAloneWhenAskedAndCountsTheRest) {
  const Corpus corpus({{4, 4, 3, 9}, {25}, {3}});
  const SequenceOptions options{.max_length = 12, .only_first = true};
  const Built first = build(corpus.open(), options, 0);
  EXPECT_EQ(lengths_of(first), (std::vector<std::uint32_t>{8}));
  EXPECT_EQ(first.lost.behind_first_sequence, 12U);
  EXPECT_EQ(build(corpus.open(), options, 1).lost.behind_first_sequence, 15U);
  EXPECT_EQ(build(corpus.open(), options, 2).lost.behind_first_sequence, 0U);
}

/// The document that a token belongs to.
std::uint64_t document_of(const IndexedTokens& tokens, std::uint64_t token) {
  std::uint64_t document = 0;
  while (document + 1 < tokens.num_documents() &&
         tokens.first_token(tokens.first_sentence(document + 1)) <= token) {
    ++document;
  }
  return document;
}

TEST(SequencePairs, ComeFromOneDocumentOrTwoAsTheirLabelSays) {
  std::mt19937 random(32);
  std::uint64_t num_random = 0;
  std::uint64_t num_pairs = 0;
  for (int round = 0; round < 30; ++round) {
    const Lengths lengths = random_lengths(random, 12);
    const Corpus corpus(lengths);
    const IndexedTokens tokens = corpus.open();
    const SequenceOptions options{
        .max_length = 64, .objective = Objective::WithNextSentence, .seed = random()};
    for (std::uint64_t document = 0; document < lengths.size(); ++document) {
      for (const SequenceRecord& record : build(tokens, options, document).records) {
        ASSERT_GT(record.length_a, 0U);
        ASSERT_GT(record.length_b, 0U);
        ASSERT_LE(record.length(), 64U);
        const std::uint64_t last_a = record.first_a + record.length_a - 1;
        const std::uint64_t last_b = record.first_b + record.length_b - 1;
        ASSERT_EQ(document_of(tokens, record.first_a), document);
        ASSERT_EQ(document_of(tokens, last_a), document);
        ASSERT_EQ(document_of(tokens, record.first_b), document_of(tokens, last_b));
        ASSERT_EQ(document_of(tokens, record.first_b) != document, record.is_random_next());
        ASSERT_TRUE(record.is_random_next() || record.first_b > last_a);
        num_random += record.is_random_next() ? 1 : 0;
        ++num_pairs;
      }
    }
  }
  // Half of the pairs with a choice, and all without one.
  const double share = static_cast<double>(num_random) / static_cast<double>(num_pairs);
  EXPECT_GT(share, 0.45);
  EXPECT_LT(share, 0.80);
}

TEST(SequencePairs, UseEveryTokenOnceAsAOrTrueNextUnlessCutOff) {
  std::mt19937 random(33);
  for (int round = 0; round < 40; ++round) {
    const Lengths lengths = random_lengths(random, 15);
    const Corpus corpus(lengths);
    const IndexedTokens tokens = corpus.open();
    const SequenceOptions options{
        .max_length = 40, .objective = Objective::WithNextSentence, .seed = random()};
    std::vector<int> uses(tokens.num_tokens());
    std::uint64_t cut_off = 0;
    for (std::uint64_t document = 0; document < lengths.size(); ++document) {
      const Built built = build(tokens, options, document);
      for (const SequenceRecord& record : built.records) {
        for (std::uint32_t i = 0; i < record.length_a; ++i) ++uses[record.first_a + i];
        if (record.is_random_next()) continue;
        for (std::uint32_t i = 0; i < record.length_b; ++i) ++uses[record.first_b + i];
      }
      cut_off += built.lost.pair_truncation;
    }
    ASSERT_EQ(std::count(uses.begin(), uses.end(), 1) + static_cast<std::int64_t>(cut_off),
              static_cast<std::int64_t>(uses.size()));
    ASSERT_EQ(std::count_if(uses.begin(), uses.end(), [](int count) { return count > 1; }), 0);
  }
}

TEST(SequencePairs, AreShortAsOftenAsAsked) {
  // 97 sentences of one token: without a short target, the first pair takes as many tokens as fit.
  const Corpus corpus(Lengths(1000, std::vector<std::uint32_t>(97, 1)));
  const IndexedTokens tokens = corpus.open();
  SequenceOptions options{.max_length = 100, .objective = Objective::WithNextSentence};
  const auto num_short = [&] {
    int count = 0;
    for (std::uint64_t document = 0; document < tokens.num_documents(); ++document) {
      count += build(tokens, options, document).records.front().length() < 100 ? 1 : 0;
    }
    return count;
  };
  options.short_sequence_probability = 0;
  const int never = num_short();
  options.short_sequence_probability = 0.1;
  const int sometimes = num_short();
  options.short_sequence_probability = 1;
  const int always = num_short();
  EXPECT_GT(sometimes, never + 40);
  EXPECT_LT(sometimes, never + 160);
  EXPECT_GT(always, 950);
}

TEST(SequencePairs, LoseTokensAtBothEndsOfTheLongerHalf) {
  const Corpus corpus({{400}, {400}});
  const SequenceOptions options{.max_length = 103,
                                .objective = Objective::WithNextSentence,
                                .short_sequence_probability = 0,
                                .seed = 4};
  const Built built = build(corpus.open(), options, 0);
  ASSERT_EQ(built.records.size(), 1U);
  const SequenceRecord& record = built.records[0];
  EXPECT_EQ(record.length_a, 50U);
  EXPECT_EQ(record.length_b, 50U);
  EXPECT_EQ(built.lost.pair_truncation, 350U);
  EXPECT_GT(record.first_a, 100U);  // 350 fair coins: 175 expected
  EXPECT_LT(record.first_a, 250U);
}

TEST(SequencePairs, NeedTwoDocuments) {
  const Corpus corpus({{4, 4}});
  const IndexedTokens tokens = corpus.open();
  test::expect_user_error(
      [&] { SequenceBuilder builder(tokens, {.objective = Objective::WithNextSentence}, Split::Train); },
      "at least two documents");
}

TEST(SequencePairs, DependOnSeedAndDocumentAlone) {
  std::mt19937 random(34);
  Lengths lengths = random_lengths(random, 12);
  const Corpus corpus(lengths);
  const IndexedTokens tokens = corpus.open();
  SequenceOptions options{.max_length = 64, .objective = Objective::WithNextSentence, .seed = 1};
  const auto all = [&] {
    std::vector<SequenceRecord> records;
    for (std::uint64_t document = lengths.size(); document-- > 0;) {
      for (const SequenceRecord& record : build(tokens, options, document).records) records.push_back(record);
    }
    return records;
  };
  const auto first = all();
  EXPECT_EQ(all(), first);
  options.seed = 2;
  EXPECT_NE(all(), first);
}

TEST(SequenceIndex, IsRefusedWhenDamaged) {
  const Corpus corpus({{4, 4, 3, 9}, {25}, {3}});
  base::SilentProgress silent;
  const IndexedTokens tokens = corpus.open();
  const std::string path = corpus.directory() / "s";
  write_sequence_index(tokens, {.max_length = 12}, Split::Train, 1, path, silent);
  const std::string bytes = io::read_file(path);
  SequenceIndex(path).verify();
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    const std::string damaged = corpus.directory().write("damaged", bytes.substr(0, size));
    test::expect_user_error([&] { SequenceIndex index(damaged); }, damaged);
  }
  for (std::size_t at = 48; at < bytes.size(); at += 5) {
    std::string changed = bytes;
    changed[at] ^= 1;
    const std::string damaged = corpus.directory().write("damaged", changed);
    test::expect_user_error([&] { SequenceIndex(damaged).verify(); }, "is damaged");
  }
}

}  // namespace
}  // namespace plenum::data
