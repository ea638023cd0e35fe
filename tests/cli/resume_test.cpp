#include <filesystem>
#include <regex>
#include <string>

#include <gmock/gmock.h>

#include "plenum/cli/exit_codes.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A run that exists, with values that are not the defaults.
class ResumeTest : public TrainingProgram {
 protected:
  ResumeTest() {
    const ProgramResult begun = plenum(begin_ + " --run run --steps 2 --quiet");
    EXPECT_EQ(begun.exit_code, 0) << begun.errors;
  }

  const std::string begin_ =
      "train --data data --model bert-tiny --layers 2 --width 16 --heads 2 --max-positions 32 "
      "--global-batch 16 --mask-rate 30% --optimizer lamb --seed 5 --ranks 2 --threads 2 --recompute full "
      "--micro-batch-tokens 64 --checkpoint-every 7 --keep 5 --on-full-disk continue --eval-every 6 "
      "--eval-sequences 8 --max-skipped-steps 3";
};

TEST_F(ResumeTest, NeedsNothingButTheRun) {
  const std::string config = read("run/config.toml");
  EXPECT_EQ(plenum("train --run run --print-config").output, config);
  const ProgramResult longer = plenum("train --run run --steps 4 --quiet");
  ASSERT_EQ(longer.exit_code, 0) << longer.errors;
  EXPECT_THAT(longer.output, HasSubstr("trained 4 of 4 steps"));
  EXPECT_THAT(config, HasSubstr("steps = \"2st\""));
  EXPECT_EQ(read("run/config.toml"), std::regex_replace(config, std::regex("\"2st\""), "\"4st\""));
}

TEST_F(ResumeTest, EndsWithTheBytesOfARunThatNeverStopped) {
  ASSERT_EQ(plenum(begin_ + " --run whole --steps 9 --quiet").exit_code, 0);
  ASSERT_EQ(plenum(begin_ + " --run stopped --steps 9 --stop-after 0.001s --quiet").exit_code, kStoppedCode);
  const ProgramResult again = plenum("train --run stopped --quiet");
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("trained 9 of 9 steps"));
  EXPECT_EQ(again.errors, "plenum: resumes from stopped/checkpoints/step-00000001\n");
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string bytes = read("whole/checkpoints/step-00000009/" + file);
    EXPECT_FALSE(bytes.empty());
    EXPECT_TRUE(read("stopped/checkpoints/step-00000009/" + file) == bytes) << file;
  }
}

TEST_F(ResumeTest, FlagsWinOverTheFileAndTheFileOverTheRun) {
  directory_.write("some.toml", "[checkpoint]\nkeep = 6\ncheckpoint-every = 20\n[run]\nrun = \"run\"\n");
  const std::string config = plenum("train --config some.toml --checkpoint-every 30 --print-config").output;
  EXPECT_THAT(config, AllOf(HasSubstr("checkpoint-every = \"30st\""), HasSubstr("\nkeep = 6\n"),
                            HasSubstr("eval-every = \"6st\""), HasSubstr("weight-decay = 0.01")));
}

TEST_F(ResumeTest, FollowsTheRunToAnotherPlace) {
  std::filesystem::rename(directory_ / "run", directory_ / "moved");
  const ProgramResult by_file = plenum("train --config moved/config.toml --steps 3");
  ASSERT_EQ(by_file.exit_code, 0) << by_file.errors;
  EXPECT_THAT(by_file.errors, HasSubstr("resumes from moved/checkpoints/step-00000002"));
  std::filesystem::rename(directory_ / "moved", directory_ / "elsewhere");
  const ProgramResult by_name = plenum("train --run elsewhere --steps 4");
  ASSERT_EQ(by_name.exit_code, 0) << by_name.errors;
  EXPECT_THAT(by_name.errors, HasSubstr("resumes from elsewhere/checkpoints/step-00000003"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "moved"));
}

TEST_F(ResumeTest, TakesTheFileOfAnotherRunForWhatItSays) {
  // A flag wins, and a file that lies elsewhere means what it says.
  EXPECT_EQ(plenum("train --config run/config.toml --run flag --quiet").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "flag/config.toml"));
  std::filesystem::copy(directory_ / "flag/config.toml", directory_ / "config.toml");
  EXPECT_THAT(plenum("train --config config.toml --print-config").output, HasSubstr("run = \"flag\""));
}

TEST_F(ResumeTest, ForgetsWhatWasForOneProcess) {
  const ProgramResult drawn =
      plenum("train --run run --steps 4 --trace step.svg --trace-step 1 --stop-after 1h --quiet");
  ASSERT_EQ(drawn.exit_code, 0) << drawn.errors;
  ASSERT_TRUE(std::filesystem::remove(directory_ / "step.svg"));
  for (const char* arguments : {"train --run run --steps 5", "train --config run/config.toml --steps 6"}) {
    const ProgramResult again = plenum(arguments);
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    EXPECT_THAT(again.errors, HasSubstr("wrote run/checkpoints/")) << "still quiet";
    EXPECT_FALSE(std::filesystem::exists(directory_ / "step.svg"));
  }
  EXPECT_THAT(read("run/config.toml"),
              AllOf(HasSubstr("stop-after = \"\""), Not(HasSubstr("\ntrace-step = ")),
                    HasSubstr("json = false"), HasSubstr("quiet = false"), HasSubstr("steps = \"6st\"")));
}

TEST_F(ResumeTest, RefusesWhatMayNotChange) {
  const std::string config = read("run/config.toml");
  expect_error("train --run run --width 24 --steps 4", "width in [model] is '16' there and '24' here");
  directory_.write("some.toml", "[data]\nmask-rate = 0.2\n");
  expect_error("train --run run --config some.toml", "mask-rate in [data] is '0.3' there and '0.2' here");
  expect_error("train --run run --init hf", "neither to a run that has one: --model bert-tiny --init hf");
  EXPECT_EQ(read("run/config.toml"), config);
}

TEST_F(ResumeTest, NamesTheLineOfADamagedConfiguration) {
  for (const std::string arguments : {"train --run run", "train --run run --print-config"}) {
    directory_.write("run/config.toml", "[run]\nrun = \"run\"\nse");
    expect_error(arguments, "run/config.toml:3: ");
    directory_.write("run/config.toml", "[checkpoint]\nkeep = -1\n");
    expect_error(arguments, "run/config.toml:2: keep must be at least 1: -1");
  }
}

TEST_F(ResumeTest, BeginsAnewWithTheOptionsOfARunThatHasNoCheckpoint) {
  std::filesystem::remove_all(directory_ / "run/checkpoints");
  const ProgramResult again = plenum("train --run run --mask-rate 20% --quiet");
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("trained 2 of 2 steps"));
  EXPECT_EQ(again.errors,
            "plenum: run has no checkpoint and begins anew; its options are in run/config.toml\n");
  EXPECT_THAT(read("run/config.toml"), AllOf(HasSubstr("mask-rate = 0.2"), HasSubstr("width = 16")));
}

TEST_F(ResumeTest, TakesNothingFromADirectoryThatIsNoRun) {
  expect_error("train --run mistyped", "mistyped holds no run that has one");
  directory_.write("begun/lock", "");
  expect_error("train --run begun --model bert-tiny", "add --data DIR");
  directory_.write("other/config.toml", "title = 1");
  expect_error(train_arguments("other", 2), "other is not the directory of a run and not empty");
  expect_error("train --model bert-tiny --data data", "add --run DIR");
}

}  // namespace
}  // namespace plenum::cli
