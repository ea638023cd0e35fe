#include "plenum/train/run_progress.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "plenum/io/lock_file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::train {
namespace {

/// A directory with the files of a run.
class RunProgressTest : public testing::Test {
 protected:
  RunProgressTest() {
    directory_.write("lock", "");
    directory_.write("config.toml", "");
  }

  void write_steps(std::uint64_t count, std::string_view more = "") {
    std::string lines;
    for (std::uint64_t step = 1; step <= count; ++step) {
      lines += fmt::format(
          "{{\"step\":{},\"num_steps\":1000,\"loss\":{},\"lr\":0.001,\"seconds\":0.5,"
          "\"tokens_per_second\":4000.0,\"epoch\":{},\"wall_seconds\":{}}}\n",
          step, 10.0 - static_cast<double>(step) / 1000, static_cast<double>(step) / 100, step);
    }
    directory_.write("metrics.jsonl", lines + std::string(more));
  }

  test::TemporaryDirectory directory_;
};

TEST_F(RunProgressTest, SamplesTheCurveFromItsFirstStepToItsLast) {
  write_steps(900);
  const RunProgress progress = read_run_progress(directory_.path(), 100);
  ASSERT_GT(progress.steps.size(), 50U);
  EXPECT_LE(progress.steps.size(), 101U);
  EXPECT_EQ(progress.steps.front().step, 1U);
  EXPECT_EQ(progress.steps.back().step, 900U);
  for (std::size_t i = 1; i < progress.steps.size(); ++i)
    EXPECT_GT(progress.steps[i].step, progress.steps[i - 1].step);
  EXPECT_DOUBLE_EQ(*progress.steps.back().loss, 9.1);
}

TEST_F(RunProgressTest, KnowsSpeedAndRemainingTime) {
  write_steps(900);
  const RunProgress progress = read_run_progress(directory_.path(), 10);
  EXPECT_DOUBLE_EQ(progress.tokens_per_second(), 4000);
  EXPECT_DOUBLE_EQ(progress.seconds_left(), 50);
  EXPECT_FALSE(progress.is_finished());
  write_steps(1000);
  EXPECT_TRUE(read_run_progress(directory_.path(), 10).is_finished());
}

TEST_F(RunProgressTest, PassesOverALineThatIsJustBeingWritten) {
  for (const char* cut : {"{\"step\":6,\"lo", "{\"step\":6", "{"}) {
    write_steps(5, cut);
    EXPECT_EQ(read_run_progress(directory_.path(), 10).recent.back().step, 5U) << cut;
  }
}

TEST_F(RunProgressTest, HasNoLossWhereItWasNotFinite) {
  directory_.write("metrics.jsonl", "{\"step\":1,\"loss\":null}\n");
  const RunProgress progress = read_run_progress(directory_.path(), 10);
  ASSERT_EQ(progress.recent.size(), 1U);
  EXPECT_EQ(progress.recent.back().loss, std::nullopt);
}

TEST_F(RunProgressTest, KnowsSkippedStepsFromThoseWithoutALabel) {
  directory_.write("metrics.jsonl",
                   "{\"step\":1,\"loss\":null,\"skipped\":true}\n"
                   "{\"step\":2,\"loss\":null,\"skipped\":false}\n");
  const RunProgress progress = read_run_progress(directory_.path(), 10);
  ASSERT_EQ(progress.recent.size(), 2U);
  EXPECT_TRUE(progress.recent[0].is_skipped);
  EXPECT_FALSE(progress.recent[1].is_skipped);
}

TEST_F(RunProgressTest, FindsTheLastEvaluationAndTheBest) {
  directory_.write("evaluations.jsonl",
                   "{\"step\":1,\"loss\":3.0,\"mlm_accuracy\":0.1}\n{\"step\":2,\"loss\":2.0}\n"
                   "{\"step\":3,\"loss\":2.5,\"mlm_accuracy\":0.25}\n");
  const RunProgress progress = read_run_progress(directory_.path(), 10);
  EXPECT_EQ(progress.last_evaluation->step, 3U);
  EXPECT_EQ(progress.last_evaluation->accuracy, 0.25);
  EXPECT_EQ(progress.best_evaluation->step, 2U);
  EXPECT_TRUE(progress.recent.empty());
}

TEST_F(RunProgressTest, KnowsWhetherAProcessTrainsIt) {
  EXPECT_FALSE(read_run_progress(directory_.path(), 10).is_locked);
  const io::LockFile lock(directory_ / "lock", "taken");
  EXPECT_TRUE(read_run_progress(directory_.path(), 10).is_locked);
}

TEST_F(RunProgressTest, RefusesADirectoryThatIsNone) {
  const test::TemporaryDirectory other;
  test::expect_user_error([&] { read_run_progress(other.path(), 10); }, "is not the directory of a run");
}

}  // namespace
}  // namespace plenum::train
