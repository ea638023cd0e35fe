#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "plenum/data/corpus/corpus_writer.h"
#include "plenum/data/corpus/indexed_tokens.h"
#include "plenum/data/tokenizer/tokenizer.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

/// Reads the two files as Megatron-LM's indexed dataset does, from its description alone: header, counts,
/// lengths, pointers, document indices.
struct MegatronDataset {
  explicit MegatronDataset(const std::string& prefix)
      : index(io::read_file(prefix + ".idx")), tokens(io::read_file(prefix + ".bin")) {
    EXPECT_EQ(index.substr(0, 9), std::string("MMIDIDX\0\0", 9));
    EXPECT_EQ(number<std::uint64_t>(9), 1U);
    type_code = number<std::uint8_t>(17);
    const auto num_sequences = number<std::uint64_t>(18);
    const auto num_documents = number<std::uint64_t>(26);
    std::size_t at = 34;
    for (std::uint64_t i = 0; i < num_sequences; ++i, at += 4) lengths.push_back(number<std::int32_t>(at));
    for (std::uint64_t i = 0; i < num_sequences; ++i, at += 8) pointers.push_back(number<std::int64_t>(at));
    for (std::uint64_t i = 0; i < num_documents; ++i, at += 8) documents.push_back(number<std::int64_t>(at));
    EXPECT_EQ(at, index.size());
    EXPECT_EQ(static_cast<std::int64_t>(lengths.size()), documents.back());
  }

  template <typename Number>
  Number number(std::size_t at) const {
    Number value;
    std::memcpy(&value, index.data() + at, sizeof value);
    return value;
  }

  std::vector<TokenId> sequence(std::size_t i) const {
    std::vector<TokenId> ids;
    for (std::int32_t k = 0; k < lengths[i]; ++k) {
      if (type_code == 8) {
        std::uint16_t id = 0;
        std::memcpy(&id, tokens.data() + pointers[i] + 2 * k, sizeof id);
        ids.push_back(id);
      } else {
        std::int32_t id = 0;
        std::memcpy(&id, tokens.data() + pointers[i] + 4 * k, sizeof id);
        ids.push_back(id);
      }
    }
    return ids;
  }

  std::string index;
  std::string tokens;
  std::uint8_t type_code = 0;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> documents;
};

class MegatronLayout : public PrepareTest {
 protected:
  /// Writes a vocabulary of letters and enough other words to need four bytes a token, if asked.
  std::string write_vocabulary(bool large) const {
    std::string text = letter_vocabulary();
    if (large) {
      for (int i = 0; i < 65500; ++i) text += "1word" + std::to_string(i) + "\n";
    }
    return directory_.write("large-vocab.txt", text);
  }
};

TEST_F(MegatronLayout, HoldsTheIdsOfEverySentenceAndTheBoundsOfEveryDocument) {
  const std::string input = directory_.write("in.txt", "ab c\nd\n\n\x01\n\nefg\nh\ni\n\nj\n");
  for (const bool large : {false, true}) {
    PrepareOptions given = options(input);
    given.vocab_path = write_vocabulary(large);
    given.overwrite = true;
    prepare_quietly(given);
    const MegatronDataset dataset(given.output + "/train");
    EXPECT_EQ(dataset.type_code, large ? 4 : 8);
    EXPECT_EQ(dataset.documents, (std::vector<std::int64_t>{0, 2, 5, 6}));
    const Tokenizer tokenizer = Tokenizer::load(given.vocab_path, {});
    Encoder encoder(tokenizer);
    std::size_t i = 0;
    for (const char* sentence : {"ab c", "d", "efg", "h", "i", "j"}) {
      std::vector<TokenId> ids;
      encoder.encode(sentence, ids);
      EXPECT_EQ(dataset.sequence(i++), ids);
    }
    EXPECT_EQ(dataset.lengths.size(), i);

    const MegatronDataset holdout(given.output + "/holdout");
    EXPECT_EQ(holdout.documents, std::vector<std::int64_t>{0});
    EXPECT_TRUE(holdout.lengths.empty());
  }
}

TEST_F(MegatronLayout, AgreesWithTheMappedReader) {
  PrepareOptions given = options(directory_.write("in.txt", random_text(21, 80)));
  given.holdout = 0.4;
  prepare_quietly(given);
  const CorpusPaths paths(given.output);
  for (const Split split : kSplits) {
    const MegatronDataset expected(given.output + "/" + std::string(name_of(split)));
    const IndexedTokens found(paths.tokens[index_of(split)], paths.index[index_of(split)]);
    ASSERT_EQ(found.num_sentences(), expected.lengths.size());
    ASSERT_EQ(found.num_documents() + 1, expected.documents.size());
    for (std::uint64_t i = 0; i < found.num_sentences(); ++i) {
      std::vector<TokenId> ids;
      found.append_tokens(found.first_token(i), found.sentence_length(i), ids);
      ASSERT_EQ(ids, expected.sequence(i));
    }
    for (std::uint64_t d = 0; d <= found.num_documents(); ++d) {
      ASSERT_EQ(static_cast<std::int64_t>(found.first_sentence(d)), expected.documents[d]);
    }
  }
}

TEST_F(MegatronLayout, ADamagedIndexIsRefused) {
  prepare_quietly(options(directory_.write("in.txt", "ab c\nd\n\nefg\n")));
  const std::string tokens = directory_ / "out/train.bin";
  const std::string index = io::read_file(directory_ / "out/train.idx");
  const auto expect_refusal = [&](std::string damaged, std::string_view part) {
    const std::string path = directory_.write("damaged.idx", damaged);
    test::expect_user_error([&] { IndexedTokens opened(tokens, path); }, part);
  };
  for (std::size_t size = 0; size < index.size(); size += 3) {
    expect_refusal(index.substr(0, size), "damaged.idx");
  }
  const auto with_byte = [&](std::size_t at, char value) {
    std::string damaged = index;
    damaged[at] = value;
    return damaged;
  };
  expect_refusal(with_byte(0, 'X'), "is not an index of tokens");
  expect_refusal(with_byte(9, 2), "is not an index of tokens");
  expect_refusal(with_byte(17, 5), "unknown type of tokens");
  expect_refusal(with_byte(25, 127), "does not have the size");
  expect_refusal(with_byte(33, -1), "does not have the size");
  expect_refusal(with_byte(34 + 2 * 4, 77), "does not belong to");
}

}  // namespace
}  // namespace plenum::data
