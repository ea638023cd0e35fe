#include "plenum/train/run_fingerprint.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "plenum/train/prepared_data.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/starting_model.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;

class RunFingerprintTest : public TrainingTest {
 protected:
  /// Of a run that begins with a model, where another process's begins with another.
  std::string difference(const std::string& theirs, const std::string& ours) const {
    return control::difference_text(fingerprint(theirs), fingerprint(ours));
  }

  control::Fingerprint fingerprint(const std::string& source) const {
    RunOptions given = options("second");
    given.model = {.init = source};
    given.model = settle_source(given.model, [](std::string_view) {});
    return fingerprint_of(given, PreparedData(dataset_));
  }
};

/// The best checkpoint of a run that goes on is another one from one moment to the next.
TEST_F(RunFingerprintTest, DiffersWhereProcessesBeginWithOtherCheckpoints) {
  RunOptions first = options("first", 10);
  first.checkpoint.keep = 9;
  run(first);
  const std::string checkpoints = RunPaths(first.run.directory).checkpoints;
  const std::string five = checkpoints + "/step-00000005";
  const std::string ten = checkpoints + "/step-00000010";
  EXPECT_THAT(difference(five, ten),
              testing::ContainsRegex("the model to begin with is step 5, xxh3:[0-9a-f]+ "
                                     "and not step 10, xxh3:"));
  EXPECT_EQ(difference(first.run.directory, ten), "");
  EXPECT_EQ(difference(checkpoints + "/best", ten), "");
}

TEST_F(RunFingerprintTest, DiffersWhereTheWeightsOfADirectoryDo) {
  run(options("first"));
  const std::string checkpoint = CheckpointStore(directory_ / "first", 1).list().back();
  for (const char* name : {"here", "there"}) {
    fs::create_directory(directory_ / name);
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy(checkpoint + "/" + file, (directory_ / name) + "/" + file);
  }
  EXPECT_EQ(difference(directory_ / "here", directory_ / "there"), "") << "a path may have another name";
  std::string weights = io::read_file(directory_ / "there/model.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  io::write_file(directory_ / "there/model.safetensors", weights);
  EXPECT_THAT(difference(directory_ / "here", directory_ / "there"),
              testing::StartsWith("the model to begin with is xxh3:"));
}

TEST_F(RunFingerprintTest, LeavesOutTheModelThatARunWithACheckpointNoLongerNeeds) {
  run(options("second"));
  EXPECT_EQ(difference("gone", "elsewhere"), "");
}

}  // namespace
}  // namespace plenum::train
