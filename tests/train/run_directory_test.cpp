#include "plenum/train/run_directory.h"

#include <gmock/gmock.h>

#include "plenum/data/batches/packing_plan_file.h"
#include "plenum/io/lock_file.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/train/prepared_data.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

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

TEST_F(RunDirectoryTest, IsNotMadeAnotherRunByItsOwnConfiguration) {
  const std::string path = RunPaths(given_.run.directory).config;
  const std::string config = io::read_file(path);
  const auto edit = [&](const std::string& line, const std::string& other) {
    const std::size_t begin = config.find(line);
    ASSERT_NE(begin, std::string::npos) << line;
    io::write_file(path, std::string(config).replace(begin, line.size(), other));
  };
  edit("\nseed = 3\n", "\nseed = 7\n");
  EXPECT_THAT(error_of(read_run_options(given_.run.directory)),
              HasSubstr("seed in [run] is '3' there and '7' here"));
  edit("\nkeep = 2\n", "\nkeep = 9\n");
  EXPECT_EQ(error_of(read_run_options(given_.run.directory)), "no error");
}

TEST_F(RunDirectoryTest, ReadsTheNamesThatOptionsHadWhenItWasBegun) {
  const std::string path = RunPaths(given_.run.directory).config;
  std::string config = io::read_file(path);
  const std::string line = "\nlr-schedule = \"linear\"\n";
  ASSERT_NE(config.find(line), std::string::npos);
  config.replace(config.find(line), line.size(), "\nschedule = \"linear\"\n");
  io::write_file(path, config);
  RunOptions other = given_;
  other.run.steps = {4, optim::DurationUnit::Steps};
  other.optimizer.learning_rate.schedule = optim::LearningRateSchedule::Cosine;
  EXPECT_THAT(error_of(other), HasSubstr("lr-schedule in [optimizer] is 'linear' there and 'cosine' here"));
  other.optimizer.learning_rate = given_.optimizer.learning_rate;
  EXPECT_EQ(error_of(other), "no error");
  EXPECT_THAT(io::read_file(path), HasSubstr(line));
}

TEST_F(RunDirectoryTest, LetsHardwareCadenceAndLengthChange) {
  RunOptions other = given_;
  other.run.ranks = 2;
  other.run.threads = 2;
  other.run.recompute = schedule::Recomputation::Full;
  other.data.micro_batch_tokens = 100;
  other.checkpoint.keep = 7;
  other.run.steps = {5, optim::DurationUnit::Steps};
  EXPECT_EQ(error_of(other), "no error");
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("steps was '3st' and is now '5st'")));
  EXPECT_EQ(observer_.steps.size(), 2U);
  EXPECT_THAT(io::read_file(RunPaths(other.run.directory).config), HasSubstr("keep = 7"));
}

TEST_F(RunDirectoryTest, KeepsNothingThatIsForOneProcess) {
  RunOptions drawn = options("drawn", 3);
  drawn.run.process = {.stop_after = "1h",
                       .trace = directory_ / "step.svg",
                       .trace_step = 2,
                       .hang_limit = "2h",
                       .quiet = true};
  run(drawn);
  const ProcessSettings kept = read_run_options(drawn.run.directory).run.process;
  EXPECT_EQ(kept.stop_after, "");
  EXPECT_EQ(kept.trace, "");
  EXPECT_EQ(kept.trace_step, ProcessSettings().trace_step);
  EXPECT_EQ(kept.hang_limit, ProcessSettings().hang_limit);
  EXPECT_EQ(kept.quiet, false);
}

TEST_F(RunDirectoryTest, TellsAChangeOnlyWhereStepsFollow) {
  const auto change = Contains(HasSubstr("steps was '3st'"));
  RunOptions refused = options("run", 5);
  refused.data.directory = prepare("pairs", data::Objective::WithNextSentence);
  EXPECT_THAT(error_of(refused), HasSubstr("was trained on other data"));
  EXPECT_THAT(observer_.notes, Not(change));
  EXPECT_EQ(run(options("run", 2)).step, 3U);
  EXPECT_THAT(observer_.notes, Not(change));
  run(options("run", 5));
  EXPECT_THAT(observer_.notes, change);
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

TEST_F(RunDirectoryTest, IsNotMadeForARunThatIsRefused) {
  const RunOptions wanted = options("parent/new");
  std::vector<std::pair<std::string, RunOptions>> refused;
  const auto add = [&](std::string error) -> RunOptions& {
    return refused.emplace_back(std::move(error), wanted).second;
  };
  add("heads").model.heads = 3;
  add("micro-batch-tokens").data.micro_batch_tokens = 1;
  add("step.svg").run.process.trace = directory_ / "missing/step.svg";
  ModelSettings& missing = add("missing").model = {};
  missing.init = directory_ / "missing";
  ModelSettings& large = add("of memory").model = {};
  large.preset = "bert-large";
  large.layers = 4000;
  for (auto& [expected, other] : refused) {
    EXPECT_THAT(error_of(other), HasSubstr(expected));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "parent")) << expected;
    other.run.directory = directory_ / "empty";
    std::filesystem::create_directory(other.run.directory);
    EXPECT_THAT(error_of(other), HasSubstr(expected));
    EXPECT_TRUE(std::filesystem::is_empty(other.run.directory)) << expected;
  }
}

TEST_F(RunDirectoryTest, IsMadeByOneOfTwoProcessesThatBeginAtOnce) {
  const PreparedData dataset(dataset_);
  RunDirectory second(options("new"), dataset);
  {
    RunDirectory first(options("new"), dataset);
    first.make();
    EXPECT_THAT(test::user_error_of([&] { second.make(); }), HasSubstr("another process trains"));
  }
  EXPECT_THAT(test::user_error_of([&] { second.make(); }),
              HasSubstr("another process began this run meanwhile"));
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

TEST_F(RunDirectoryTest, KeepsThePackingPlanItWasBegunWith) {
  const PreparedData dataset(dataset_);
  const auto plan_of_depth = [&](std::int64_t depth) {
    return data::print_packing_plan(
        packing::pack_lpfhp({.histogram = dataset.training().histogram(), .capacity = 24, .depth = depth}));
  };
  RunOptions packed = options("packed", 3);
  packed.data.layout = data::Layout::Packed;
  packed.data.packing_plan = directory_.write("plan.json", plan_of_depth(24));
  ASSERT_EQ(error_of(packed), "no error");

  RunOptions moved = packed;
  moved.data.packing_plan = directory_.write("moved.json", plan_of_depth(24));
  EXPECT_EQ(error_of(moved), "no error");
  directory_.write("plan.json", plan_of_depth(2));
  EXPECT_THAT(error_of(packed), AllOf(HasSubstr("packed was trained with another packing plan than"),
                                      HasSubstr("plan.json now holds")));
  RunOptions without = packed;
  without.data.packing_plan.clear();
  EXPECT_THAT(error_of(without), HasSubstr("was trained with another packing plan than none"));
}

TEST_F(RunDirectoryTest, GoesOnWhereverItsFirstWeightsCameFrom) {
  RunOptions begun = options("begun", 3);
  begun.model = {};
  begun.model.init = CheckpointStore(given_.run.directory, 1).list().back();
  ASSERT_EQ(error_of(begun), "no error");
  begun.model.init = directory_ / "no-longer-there";
  begun.run.steps = {4, optim::DurationUnit::Steps};
  EXPECT_EQ(error_of(begun), "no error");
  EXPECT_EQ(observer_.steps.size(), 1U);
}

TEST_F(RunDirectoryTest, BeginsAnewWhereTheFirstCheckpointWasNeverFinished) {
  RunOptions other = options("none", 3);
  directory_.write("none/lock", "");
  directory_.write("none/config.toml", io::read_file(RunPaths(given_.run.directory).config));
  directory_.write("none/checkpoints/step-00000003.partial-0/config.json", "{");
  other.run.seed = 4;
  EXPECT_EQ(error_of(other), "no error");
  EXPECT_EQ(observer_.steps.size(), 3U);
  EXPECT_EQ(std::filesystem::exists(directory_ / "none/checkpoints/step-00000003.partial-0"), false);
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
