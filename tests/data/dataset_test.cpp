#include "plenum/data/corpus/dataset.h"

#include <gtest/gtest.h>

#include "plenum/data/batches/padding.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using test::expect_user_error;

class DatasetTest : public PrepareTest {
 protected:
  DatasetTest() {
    PrepareOptions given = options(directory_.write("in.txt", random_text(41, 60)));
    given.sequences.objective = Objective::WithNextSentence;
    given.holdout = 0.3;
    prepare_quietly(given);
  }
  const std::string path_ = directory_ / "out";
};

TEST_F(DatasetTest, AssemblesPairsWithSpecialTokensAndSegments) {
  const Dataset dataset(path_);
  const SpecialTokens special = dataset.description().special;
  ASSERT_GT(dataset.num_sequences(Split::Train), 20U);
  for (std::uint64_t id = 0; id < dataset.num_sequences(Split::Train); ++id) {
    const SequenceRecord record = dataset.record(Split::Train, id);
    std::vector<TokenId> tokens = {77};
    std::vector<std::uint8_t> segments = {9};
    dataset.append_sequence(Split::Train, id, tokens, segments);
    ASSERT_EQ(tokens.size(), record.length() + 1);
    ASSERT_EQ(segments.size(), tokens.size());
    ASSERT_EQ(tokens[0], 77) << "it appends";
    ASSERT_EQ(tokens[1], special.cls);
    ASSERT_EQ(tokens[2 + record.length_a], special.sep);
    ASSERT_EQ(tokens.back(), special.sep);
    ASSERT_EQ(segments[2 + record.length_a], 0);
    ASSERT_EQ(segments[3 + record.length_a], 1);
    ASSERT_EQ(std::count(segments.begin(), segments.end(), 1), record.length_b + 1);
  }
}

TEST_F(DatasetTest, SaysAgainWhatWasDescribed) {
  const DatasetDescription description = read_dataset_description(path_);
  EXPECT_EQ(print_by_key(to_json(description)), io::read_file(path_ + "/dataset.json"));
}

TEST_F(DatasetTest, RefusesADirectoryWithoutDescription) {
  std::filesystem::remove(path_ + "/dataset.json");
  expect_user_error([&] { Dataset dataset(path_); }, "is no dataset: it has no dataset.json");
}

TEST_F(DatasetTest, RefusesAnotherVersion) {
  std::string text = io::read_file(path_ + "/dataset.json");
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 9");
  directory_.write("out/dataset.json", text);
  expect_user_error([&] { Dataset dataset(path_); },
                    "has format version 9, but this program reads version 1");
}

TEST_F(DatasetTest, RefusesADamagedDescription) {
  const std::string text = io::read_file(path_ + "/dataset.json");
  for (std::size_t size = 0; size + 2 < text.size(); size += text.size() / 37) {
    directory_.write("out/dataset.json", text.substr(0, size));
    expect_user_error([&] { Dataset dataset(path_); }, "dataset.json");
  }
  directory_.write("out/dataset.json",
                   "{\"format\": \"plenum-dataset\", \"version\": 1, \"max_length\": \"x\"}");
  expect_user_error([&] { Dataset dataset(path_); }, "dataset.json is damaged");
}

TEST_F(DatasetTest, RefusesFilesOfAnotherSizeAndNamesThem) {
  for (const char* name : {"train.bin", "train.idx", "holdout.sequences", "vocab.txt"}) {
    const std::string file = path_ + "/" + name;
    const std::string bytes = io::read_file(file);
    directory_.write(std::string("out/") + name, bytes + "x");
    expect_user_error([&] { Dataset dataset(path_); }, file);
    std::filesystem::remove(file);
    expect_user_error([&] { Dataset dataset(path_); }, "cannot open " + file);
    directory_.write(std::string("out/") + name, bytes);
  }
  Dataset dataset(path_);
}

TEST_F(DatasetTest, RefusesARecordThatPointsOutside) {
  std::string bytes = io::read_file(path_ + "/train.sequences");
  bytes[48 + 7] = 1;  // the highest byte of the first record's first token
  directory_.write("out/train.sequences", bytes);
  const Dataset dataset(path_);
  expect_user_error([&] { dataset.record(Split::Train, 0); },
                    "train.sequences is damaged: record 0 is out of range");
}

TEST_F(DatasetTest, VerifiesEveryFile) {
  base::SilentProgress silent;
  Dataset(path_).verify(silent);
  for (const char* name : {"train.bin", "train.idx", "train.sequences", "holdout.bin", "tokenizer.json"}) {
    const std::string bytes = io::read_file(path_ + "/" + name);
    std::string changed = bytes;
    changed[changed.size() / 2] ^= 4;
    directory_.write(std::string("out/") + name, changed);
    expect_user_error([&] { Dataset(path_).verify(silent); }, name);
    directory_.write(std::string("out/") + name, bytes);
  }
}

TEST(Padding, IsWhatPaddedBatchesWouldHold) {
  packing::LengthHistogram histogram;
  histogram.counts.resize(11);
  EXPECT_EQ(padding_to_max_length(histogram, 10), 0);
  EXPECT_EQ(padding_to_longest(histogram, 32), 0);
  histogram.counts[10] = 5;
  EXPECT_DOUBLE_EQ(padding_to_max_length(histogram, 10), 0);
  EXPECT_DOUBLE_EQ(padding_to_longest(histogram, 32), 0);
  histogram.counts[2] = 5;
  EXPECT_DOUBLE_EQ(padding_to_max_length(histogram, 10), 0.4);
  // The longest of two is 2 with probability 1/4, else 10: 8 on average, of which 6 are text.
  EXPECT_DOUBLE_EQ(padding_to_longest(histogram, 2), 0.25);
  EXPECT_NEAR(padding_to_longest(histogram, 32), 0.4, 1e-8);
}

}  // namespace
}  // namespace plenum::data
