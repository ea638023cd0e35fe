#include <algorithm>
#include <filesystem>
#include <stop_token>

#include <gmock/gmock.h>

#include "plenum/tensor/device_error.h"
#include "plenum/train/run_directory.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::ElementsAre;

class StoppingTest : public TrainingTest {
 protected:
  StoppingTest() { std::filesystem::create_directory(directory_ / "place"); }

  /// So that drawing step 3 fails.
  std::function<void(const StepReport&)> remove_place_of_drawing() const {
    return [this](const StepReport& report) {
      if (report.step == 2) std::filesystem::remove(directory_ / "place");
    };
  }

  const std::string drawing_ = directory_ / "place/step.svg";
};

TEST_F(StoppingTest, WritesTheCheckpointAtOnceAndEvaluatesNothing) {
  RunOptions given = options("run", 20);
  given.evaluation.every = {1, optim::DurationUnit::Steps};
  const TrainingResult result = run_and_stop(given, 3);
  EXPECT_EQ(result.end, TrainingResult::End::Stopped);
  EXPECT_EQ(result.step, 3U);
  EXPECT_THAT(observer_.checkpoints, ElementsAre(1, 2, 3));  // each was a new best
  EXPECT_EQ(observer_.evaluations.size(), 2U);
}

TEST_F(StoppingTest, LeavesTheEvaluationThatWasDueToTheNextProcess) {
  RunOptions whole = options("whole", 10);
  whole.evaluation.every = {5, optim::DurationUnit::Steps};
  run(whole);
  RunOptions parts = options("parts", 10);
  parts.evaluation.every = {5, optim::DurationUnit::Steps};
  EXPECT_EQ(run_and_stop(parts, 4).step, 5U);
  EXPECT_TRUE(observer_.evaluations.empty());
  EXPECT_EQ(run_and_stop(parts, 9).step, 10U);
  EXPECT_THAT(observer_.evaluations, ElementsAre(testing::Pair(5, testing::_)));
  const TrainingResult result = run(parts);
  EXPECT_THAT(observer_.evaluations, ElementsAre(testing::Pair(10, testing::_)));
  EXPECT_TRUE(observer_.steps.empty());
  EXPECT_TRUE(result.evaluation.has_value());
  expect_same_checkpoint(parts, whole);
  run(parts);
  EXPECT_TRUE(observer_.evaluations.empty());
}

TEST_F(StoppingTest, FollowsFromTheOutcomeOfTheNextStepWhichAllRanksKnow) {
  const TrainingResult result = run_and_stop(options("run", 20), 3);
  EXPECT_EQ(result.step, 4U);
  EXPECT_FALSE(observer_.steps[2].outcome.is_stop_asked);
  EXPECT_TRUE(observer_.steps[3].outcome.is_stop_asked);
}

TEST_F(StoppingTest, ForTimeFollowsFromTheOutcomeOfAStepToo) {
  RunOptions given = options("run", 1e6);
  given.run.ranks = 2;
  given.run.threads = 2;
  given.run.process.stop_after = "0.1s";
  const TrainingResult result = run(given);
  EXPECT_EQ(result.end, TrainingResult::End::Stopped);
  for (const StepReport& report : observer_.steps) {
    EXPECT_EQ(report.outcome.due.is_time_up, report.step == result.step) << report.step;
  }
}

TEST_F(StoppingTest, WithoutRoomForItsCheckpointIsAnErrorEvenWhereTheRunWouldGoOn) {
  const RunOptions whole = options("whole", 5);
  run(whole);
  const std::uint64_t size = newest_checkpoint(whole).at("optimizer.safetensors").size();
  RunOptions given = options("run", 20);
  given.checkpoint.on_full_disk = OnFullDisk::Continue;
  const test::FileSizeLimit full_disk(size - 1);
  test::expect_user_error([&] { run_and_stop(given, 7); }, "a checkpoint of step 8 could not be written");
}

TEST_F(StoppingTest, ByAnErrorKeepsTheStepsBeforeIt) {
  RunOptions given = options("run", 20);
  given.run.process.trace = drawing_;
  RecordingObserver observer;
  observer.after_step = remove_place_of_drawing();
  test::expect_user_error([&] { train(given, observer, {}); }, "place/step.svg");
  EXPECT_THAT(observer.checkpoints, ElementsAre(3));
}

TEST_F(StoppingTest, ByAGpuThatBreaksDownLeavesTheLastCheckpoint) {
  const RunOptions given = options("run", 20);
  RecordingObserver observer;
  observer.after_step = [](const StepReport& report) {
    if (report.step == 8) throw tensor::DeviceError("the GPU failed to wait");
  };
  const std::string error = test::user_error_of([&] { train(given, observer, {}); });
  EXPECT_THAT(error,
              testing::HasSubstr("the GPU failed to wait; give the command again to resume from step 5"));
  EXPECT_THAT(error, testing::EndsWith("step-00000005"));
  EXPECT_THAT(observer.checkpoints, ElementsAre(5));
}

/// What a run says whose GPU breaks down with the checkpoint of a step.
std::string error_of_breakdown_at(std::uint64_t step, const RunOptions& given, RecordingObserver& observer,
                                  const std::stop_token& stop = {}) {
  observer.after_checkpoint = [step](std::uint64_t saved) {
    if (saved == step) throw tensor::DeviceError("the GPU failed to copy");
  };
  return test::user_error_of([&] { train(given, observer, stop); });
}

TEST_F(StoppingTest, ByAGpuThatBreaksDownWhileSavingIsNoFullDisk) {
  RunOptions given = options("run", 20);
  given.checkpoint.on_full_disk = OnFullDisk::Continue;
  RecordingObserver observer;
  EXPECT_THAT(error_of_breakdown_at(10, given, observer),
              testing::StartsWith("the GPU failed to copy; give the command again to resume from step 10"));
  EXPECT_THAT(observer.checkpoints, ElementsAre(5, 10));
}

TEST_F(StoppingTest, ByAGpuThatBreaksDownInTheLastCheckpointNamesTheOneThatIsThere) {
  RecordingObserver observer;
  std::stop_source source;
  observer.after_step = [&](const StepReport& report) {
    if (report.step == 7) source.request_stop();
  };
  EXPECT_THAT(error_of_breakdown_at(8, options("run", 20), observer, source.get_token()),
              testing::StartsWith("the GPU failed to copy; give the command again to resume from step 8"));
}

TEST_F(StoppingTest, ByAGpuThatBreaksDownAfterAnErrorTellsTheBreakdown) {
  RunOptions given = options("run", 20);
  given.run.process.trace = drawing_;
  RecordingObserver observer;
  observer.after_step = remove_place_of_drawing();
  EXPECT_THAT(error_of_breakdown_at(3, given, observer),
              testing::StartsWith("the GPU failed to copy; give the command again to resume from step 3"));
}

TEST_F(StoppingTest, ForSkippedStepsLeavesTheCheckpointsFromBefore) {
  RunOptions given = options("run", 40);
  given.optimizer.learning_rate.peak = 1e30;
  given.optimizer.learning_rate.warmup = {2, optim::DurationUnit::Steps};
  given.checkpoint.every = {1, optim::DurationUnit::Steps};
  given.run.max_skipped_steps = 3;
  test::expect_user_error([&] { run(given); }, "3 steps in a row were skipped");
  for (const StepReport& report : observer_.steps) {
    const bool is_saved = std::ranges::count(observer_.checkpoints, report.step) == 1;
    EXPECT_EQ(is_saved, !report.outcome.is_skipped) << report.step;
  }
}

TEST_F(StoppingTest, OfARefusedRunLeavesItsConfiguration) {
  const RunOptions given = options("run");
  run(given);
  const std::string config = io::read_file(RunPaths(given.run.directory).config);
  RunOptions other = given;
  other.data.directory = prepare("other", data::Objective::WithNextSentence);
  test::expect_user_error([&] { run(other); }, "was trained on other data");
  EXPECT_EQ(io::read_file(RunPaths(given.run.directory).config), config);
}

TEST_F(StoppingTest, ThatLostItsConfigurationGoesOnWithTheOptionsThatItHad) {
  RunOptions given = options("run");
  run(given);
  const std::string path = RunPaths(given.run.directory).config;
  const std::string config = io::read_file(path);
  std::filesystem::remove(path);
  RunOptions unknown = given;
  unknown.model = {};
  test::expect_user_error([&] { run(unknown); }, "has checkpoints but no config.toml");
  RunOptions other = given;
  other.data.mask_rate = 0.2;
  test::expect_user_error([&] { run(other); }, "mask-rate in [data] is '0.15' there and '0.2' here");
  EXPECT_FALSE(std::filesystem::exists(path));
  run(given);
  EXPECT_EQ(io::read_file(path), config);
}

}  // namespace
}  // namespace plenum::train
