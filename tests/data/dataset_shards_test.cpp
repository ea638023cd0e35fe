#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/data/corpus/dataset.h"
#include "plenum/data/corpus/dataset_shard.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using test::expect_user_error;

TEST(DatasetShard, HasEverySequenceInOneShardAndAsManyInEachButForOne) {
  for (std::uint64_t count = 1; count <= 7; ++count) {
    for (std::uint64_t total = count; total < 30; ++total) {
      std::uint64_t num_found = 0;
      for (std::uint64_t index = 0; index < count; ++index) {
        const DatasetShard shard{.index = index, .count = count};
        const std::uint64_t num_own = shard.num_sequences(total);
        EXPECT_GE(num_own, total / count);
        EXPECT_LE(num_own, total / count + 1);
        for (std::uint64_t place = 0; place < num_own; ++place) {
          const std::uint64_t id = shard.id_of(place);
          EXPECT_LT(id, total);
          EXPECT_TRUE(shard.has(id));
          EXPECT_EQ(shard.place_of(id), place);
        }
        num_found += num_own;
      }
      EXPECT_EQ(num_found, total);
    }
  }
}

TEST(DatasetShard, KnowsTheNamesOfShards) {
  EXPECT_EQ(shard_name(12), "shard-12");
  EXPECT_TRUE(is_shard_name("shard-0"));
  for (const char* name : {"shard-", "shard-x", "shard-1x", "shard1", "a-shard-1", "shard-123456"})
    EXPECT_FALSE(is_shard_name(name)) << name;
}

class DatasetShardsTest : public PrepareTest {
 protected:
  PrepareOptions options_of(std::string_view output, std::int64_t shards,
                            Objective objective = Objective::WithNextSentence) const {
    PrepareOptions given = options(text_, output);
    given.sequences.objective = objective;
    given.holdout = 0.3;
    given.shards = shards;
    return given;
  }
  std::string prepare_shards(std::string_view output, std::int64_t shards,
                             Objective objective = Objective::WithNextSentence) const {
    prepare_quietly(options_of(output, shards, objective));
    return directory_ / output;
  }

  static void expect_same_sequence(const Dataset& actual, const Dataset& expected, Split split,
                                   std::uint64_t id) {
    std::vector<TokenId> tokens;
    std::vector<TokenId> expected_tokens;
    std::vector<std::uint8_t> segments;
    std::vector<std::uint8_t> expected_segments;
    actual.append_sequence(split, id, tokens, segments);
    expected.append_sequence(split, id, expected_tokens, expected_segments);
    ASSERT_EQ(tokens, expected_tokens) << id;
    ASSERT_EQ(segments, expected_segments) << id;
    ASSERT_EQ(actual.record(split, id).is_random_next(), expected.record(split, id).is_random_next());
  }

  std::string text_ = directory_.write("in.txt", random_text(41, 60));
};

TEST_F(DatasetShardsTest, AreTogetherTheSameDatasetUnderTheSameFingerprint) {
  base::SilentProgress silent;
  for (const Objective objective : {Objective::MaskedLanguageModel, Objective::WithNextSentence}) {
    const std::string name = std::string(name_of(objective));
    const Dataset whole(prepare_shards("whole-" + name, 1, objective));
    for (const std::int64_t count : {2, 5}) {
      const Dataset shards(prepare_shards("shards-" + name + std::to_string(count), count, objective));
      EXPECT_TRUE(shards.is_whole());
      EXPECT_EQ(shards.num_shards(), static_cast<std::uint64_t>(count));
      EXPECT_EQ(shards.description().fingerprint, whole.description().fingerprint);
      shards.verify(silent);
      for (const Split split : kSplits) {
        EXPECT_EQ(shards.histogram(split).counts, whole.histogram(split).counts);
        ASSERT_EQ(shards.num_sequences(split), whole.num_sequences(split));
        for (std::uint64_t id = 0; id < whole.num_sequences(split); ++id)
          expect_same_sequence(shards, whole, split, id);
      }
    }
  }
}

TEST_F(DatasetShardsTest, CanEachBeOpenedElsewhere) {
  const Dataset whole(prepare_shards("whole", 1));
  const std::string path = prepare_shards("shards", 3);
  std::filesystem::create_directories(directory_ / "node");
  std::filesystem::copy(path + "/shard-1", directory_ / "node/shard-1");
  std::filesystem::remove_all(path);
  base::SilentProgress silent;
  for (const char* name : {"node", "node/shard-1"}) {
    const Dataset shard(directory_ / name);
    EXPECT_FALSE(shard.is_whole());
    EXPECT_TRUE(shard.has_shard(1));
    EXPECT_FALSE(shard.has_shard(0) || shard.has_shard(2));
    shard.verify(silent);
    ASSERT_EQ(shard.num_sequences(Split::Train), whole.num_sequences(Split::Train));
    for (std::uint64_t id = 0; id < whole.num_sequences(Split::Train); ++id) {
      EXPECT_EQ(shard.length(Split::Train, id), whole.length(Split::Train, id));
      EXPECT_EQ(shard.has(id), id % 3 == 1);
      if (shard.has(id)) expect_same_sequence(shard, whole, Split::Train, id);
    }
    EXPECT_THROW(shard.record(Split::Train, 0), base::InternalError);
    for (std::uint64_t id = 0; id < whole.num_sequences(Split::Holdout); ++id)
      expect_same_sequence(shard, whole, Split::Holdout, id);
  }
}

TEST_F(DatasetShardsTest, DoNotMixWithThoseOfAnotherDataset) {
  const std::string path = prepare_shards("shards", 2);
  const std::string other = prepare_shards("other", 2, Objective::MaskedLanguageModel);
  const std::string more = prepare_shards("more", 3);
  for (const std::string& foreign : {other, more}) {
    std::filesystem::remove_all(path + "/shard-1");
    std::filesystem::copy(foreign + "/shard-1", path + "/shard-1");
    expect_user_error([&] { Dataset dataset(path); }, "shard-1 is a shard of another dataset than");
  }
  std::filesystem::remove_all(path + "/shard-1");
  std::filesystem::copy(path + "/shard-0", path + "/shard-1");
  expect_user_error([&] { Dataset dataset(path); }, "shard-1 is shard 0 of the dataset, and so is");
}

TEST_F(DatasetShardsTest, AreRefusedWhereTheDescriptionOrAFileIsDamaged) {
  const std::string path = prepare_shards("shards", 2);
  const std::string text = io::read_file(path + "/shard-1/dataset.json");
  const std::string key = R"("shard": {"index":1,"count":2})";
  ASSERT_NE(text.find(key), std::string::npos);
  for (const char* damaged :
       {R"("shard": {"index":2,"count":2})", R"("shard": {"index":0,"count":1})", R"("shard": {"index":0})",
        R"("shard": 7)", R"("shard": {"index":0,"count":99999999999})"}) {
    std::string changed = text;
    changed.replace(changed.find(key), key.size(), damaged);
    directory_.write("shards/shard-1/dataset.json", changed);
    expect_user_error([&] { Dataset dataset(path); }, "shard-1/dataset.json is damaged");
  }
  directory_.write("shards/shard-1/dataset.json", text);
  std::string bytes = io::read_file(path + "/shard-1/train.bin");
  bytes[bytes.size() / 2] ^= 4;
  directory_.write("shards/shard-1/train.bin", bytes);
  base::SilentProgress silent;
  expect_user_error([&] { Dataset(path).verify(silent); }, "shard-1/train.bin is damaged");
}

TEST_F(DatasetShardsTest, AreRecognisedAndReplacedAsDatasetsAre) {
  const std::string path = prepare_shards("shards", 2);
  EXPECT_TRUE(prepare_quietly(options_of("shards", 2)).was_there);
  for (const std::int64_t count : {1, 3})
    expect_user_error([&] { prepare_quietly(options_of("shards", count)); },
                      "holds a dataset of other input or options");
  for (const std::int64_t count : {3, 1, 2}) {
    PrepareOptions given = options_of("shards", count);
    given.overwrite = true;
    EXPECT_FALSE(prepare_quietly(given).was_there);
    EXPECT_EQ(Dataset(path).num_shards(), static_cast<std::uint64_t>(count));
    EXPECT_TRUE(prepare_quietly(options_of("shards", count)).was_there);
  }
  directory_.write("shards/shard-1/notes.txt", "mine");
  PrepareOptions given = options_of("shards", 3);
  given.overwrite = true;
  expect_user_error([&] { prepare_quietly(given); }, "notes.txt");
}

TEST_F(DatasetShardsTest, CannotBeMoreThanThereAreSequences) {
  const Dataset whole(prepare_shards("whole", 1));
  const auto num_sequences = static_cast<std::int64_t>(whole.num_sequences(Split::Train));
  expect_user_error([&] { prepare_quietly(options_of("shards", num_sequences + 1)); }, "give fewer --shards");
  EXPECT_EQ(Dataset(prepare_shards("shards", num_sequences)).num_shards(), whole.num_sequences(Split::Train));
}

}  // namespace
}  // namespace plenum::data
