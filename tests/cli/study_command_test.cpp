#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;

class StudyCommandTest : public TrainingProgram {
 protected:
  static std::string configuration(const std::string& more) {
    return "--model bert-tiny --layers 2 --width 16 --heads 2 --max-positions 32 --layout unpadded "
           "--global-batch 400tok --learning-rate 1e-3 " +
           more + "\n";
  }
};

TEST_F(StudyCommandTest, ComparesEveryConfigurationWithItsPrediction) {
  directory_.write("grid",
                   configuration("--seed 1") +
                       configuration("--seed 1 --ranks 2 --emulate-link latency=100us,bandwidth=1GB/s"));
  const test::ProgramResult outcome =
      plenum("study --data data --output out --grid grid --steps 12 --repeats 2 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 4) << outcome.errors;
  const nlohmann::json study = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(study, nlohmann::json::parse(read("out/study.json")));
  ASSERT_EQ(study["configurations"].size(), 2);
  for (const nlohmann::json& result : study["configurations"]) {
    EXPECT_EQ(result["failure"], nullptr);
    EXPECT_EQ(result["predicted"]["step_seconds"].size(), 12);
    EXPECT_GT(result["predicted"]["step_seconds"][0], 0);
    ASSERT_EQ(result["runs"].size(), 2);
    for (const nlohmann::json& run : result["runs"]) {
      EXPECT_EQ(run["step_seconds"].size(), 12);
      // What was planned before the run is what the run planned.
      EXPECT_EQ(run["planned_bytes"], result["predicted"]["planned_bytes"]);
      EXPECT_GT(run["used_bytes"], 1'000'000);
    }
  }
  EXPECT_EQ(study["configurations"][0]["runs"][0]["step_tokens"],
            study["configurations"][1]["runs"][1]["step_tokens"]);
  EXPECT_NE(study["configurations"][1]["runs"][0]["exposed_seconds"], nullptr);
  EXPECT_THAT(read("out/study.md"), HasSubstr("| predicted ms | measured ms |"));
  for (const std::string plot : {"step-time", "memory", "single-steps"})
    EXPECT_THAT(read("out/" + plot + ".svg"), HasSubstr("</svg>"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out/runs"));
}

TEST_F(StudyCommandTest, RefusesAFileWithAConfigurationThatTrainRefuses) {
  directory_.write("grid", configuration("") + configuration("--ranks 2 --tp 2 --pp 2"));
  expect_error("study --data data --output out --grid grid --steps 12", "grid:2: ");
  directory_.write("grid", configuration("--steps 3"));
  expect_error("study --data data --output out --grid grid --steps 12", "--steps is the study's own");
  directory_.write("grid", configuration("--steps=3"));
  expect_error("study --data data --output out --grid grid --steps 12", "--steps is the study's own");
}

TEST_F(StudyCommandTest, ARunThatFailsIsReported) {
  // Stops before it has done its steps, with a code of its own.
  directory_.write("grid", configuration("") + configuration("--stop-after 0.001s"));
  const test::ProgramResult outcome = plenum("study --data data --output out --grid grid --steps 12");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("## Not measured"));
  EXPECT_THAT(outcome.output, HasSubstr("exit code 85"));
  EXPECT_THAT(outcome.output, HasSubstr("1 configurations"));
}

TEST_F(StudyCommandTest, AsksForWhatItNeeds) {
  expect_error("study --output out", "--data");
  expect_error("study --data data", "--output");
  expect_error("study --data data --output out --engine mpi", "--machine");
  expect_error("study --data data --output out --steps 3", "do not count");
  expect_error("study --data data --output out --grid qick", "--grid");
  expect_error("study --data data --output out --ranks 0", "--ranks");
}

}  // namespace
}  // namespace plenum::cli
