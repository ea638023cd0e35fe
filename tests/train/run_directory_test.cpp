#include "plenum/train/run_directory.h"

#include <gmock/gmock.h>

#include "plenum/io/lock_file.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

class RunDirectoryTest : public TrainingTest {
 protected:
  RunDirectoryTest() { run(given_); }
  std::string error_of(const RunOptions& other) {
    return test::user_error_of([&] { run(other); });
  }

  RunOptions given_ = options("run", 3);
};

TEST_F(RunDirectoryTest, NamesTheFirstKeyOfAnotherConfigurationWithBothValues) {
  RunOptions other = given_;
  other.model.width = 24;
  EXPECT_THAT(error_of(other), HasSubstr("run belongs to another configuration: width in [model] is '16' "
                                         "there and '24' here"));
  other = given_;
  other.model.hidden_dropout = 0.2;
  EXPECT_THAT(error_of(other), HasSubstr("hidden-dropout in [model] is not set there and '0.2' here"));
  other = given_;
  other.run.seed = 4;
  EXPECT_THAT(error_of(other), HasSubstr("seed in [run]"));
  other = given_;
  other.data.mask_rate = 0.2;
  EXPECT_THAT(error_of(other), HasSubstr("mask-rate in [data]"));
  EXPECT_EQ(error_of(given_), "no error");
}

TEST_F(RunDirectoryTest, LetsHardwareCadenceAndLengthChange) {
  RunOptions other = given_;
  other.run.ranks = 2;
  other.run.threads = 2;
  other.run.recompute = model::Recompute::Full;
  other.data.micro_batch_tokens = 100;
  other.checkpoint.keep = 7;
  other.run.steps = {5, optim::DurationUnit::Steps};
  EXPECT_EQ(error_of(other), "no error");
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("steps was '3st' and is now '5st'")));
  EXPECT_EQ(observer_.steps.size(), 2U);
  EXPECT_THAT(io::read_file(RunPaths(other.run.directory).config), HasSubstr("keep = 7"));
}

TEST_F(RunDirectoryTest, RefusesOtherData) {
  RunOptions other = given_;
  other.data.directory = prepare("pairs", data::Objective::WithNextSentence);
  EXPECT_THAT(error_of(other), HasSubstr("was trained on other data than"));
}

TEST_F(RunDirectoryTest, FindsTheSameDataElsewhere) {
  RunOptions other = given_;
  std::filesystem::rename(dataset_, directory_ / "moved");
  other.data.directory = directory_ / "moved";
  EXPECT_EQ(error_of(other), "no error");
}

TEST_F(RunDirectoryTest, IsTrainedByOneProcessAtATime) {
  const io::LockFile held(RunPaths(given_.run.directory).lock, "taken");
  EXPECT_THAT(error_of(given_), HasSubstr("another process trains"));
}

TEST_F(RunDirectoryTest, LeavesOtherDirectoriesAlone) {
  RunOptions other = options("elsewhere");
  directory_.write("elsewhere/thesis.txt", "x");
  EXPECT_THAT(error_of(other), HasSubstr("is not the directory of a run and not empty"));
}

TEST_F(RunDirectoryTest, DoesNotBeginAnewWhereCheckpointsCannotBeRead) {
  const RunPaths paths(given_.run.directory);
  std::filesystem::rename(paths.checkpoints, directory_ / "elsewhere");
  std::filesystem::create_symlink("nowhere", paths.checkpoints);
  RunOptions other = given_;
  other.run.seed = 4;
  EXPECT_THAT(error_of(other), HasSubstr("checkpoints: No such file"));
  std::filesystem::remove(paths.checkpoints);
  std::filesystem::rename(directory_ / "elsewhere", paths.checkpoints);
  EXPECT_EQ(error_of(given_), "no error") << "the run's configuration was overwritten";
}

TEST_F(RunDirectoryTest, BeginsAnewWhereNothingWasTrainedYet) {
  RunOptions other = options("none", 3);
  other.data.directory = directory_ / "missing";
  EXPECT_THAT(error_of(other), HasSubstr("missing"));
  other = options("none", 3);
  other.model.heads = 3;
  EXPECT_THAT(error_of(other), HasSubstr("heads"));
  EXPECT_EQ(error_of(options("none", 3)), "no error");
}

}  // namespace
}  // namespace plenum::train
