#include <filesystem>

#include <gmock/gmock.h>

#include "plenum/base/progress.h"
#include "plenum/train/model_source.h"
#include "plenum/train/run_directory.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

/// What a process that is killed throws here: nothing saves on its way out.
struct Killed {};

/// Runs that are evaluated after every third step and soon learn too fast to get better.
class BestCheckpointTest : public TrainingTest {
 protected:
  RunOptions overshooting(std::string_view run, double steps = 60) const {
    RunOptions given = options(run, steps);
    given.optimizer.learning_rate.peak = 0.3;
    given.optimizer.learning_rate.schedule = optim::LearningRateSchedule::Constant;
    given.optimizer.learning_rate.warmup = {0.5, optim::DurationUnit::Run};
    given.evaluation.every = {3, optim::DurationUnit::Steps};
    given.checkpoint.keep = 1;
    return given;
  }

  static std::vector<std::string> names(const RunOptions& given) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(RunPaths(given.run.directory).checkpoints))
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }

  /// Kills a run after each of the steps, and lets another process end it.
  void run_killed_after(const RunOptions& given, const std::vector<std::uint64_t>& steps) {
    for (const std::uint64_t step : steps) {
      RecordingObserver observer;
      observer.after_step = [&](const StepReport& report) {
        if (report.step == step) throw Killed();
      };
      EXPECT_THROW(train(given, observer, {}), Killed);
    }
    run(given);
  }
};

TEST_F(BestCheckpointTest, IsKeptBesideTheNewestAndNamed) {
  const RunOptions given = overshooting("run");
  const TrainingResult result = run(given);
  ASSERT_LT(result.best_step, 55U) << "the run should get worse";
  const std::string best = fmt::format("step-{:08}", result.best_step);
  EXPECT_THAT(names(given), testing::ElementsAre("best", best, "step-00000060"));
  EXPECT_EQ(fs::read_symlink(RunPaths(given.run.directory).checkpoints + "/best"), best);
  base::SilentProgress silent;
  const ModelSource found = find_model(given.run.directory, silent);
  EXPECT_THAT(found.directory, testing::EndsWith(best));
  EXPECT_EQ(found.remark,
            fmt::format("step {}, the best held-out loss ({:.4f})", result.best_step, *result.best_loss));
  const ModelSource last = find_model(given.run.directory, silent, {CheckpointChoice::Kind::Last});
  EXPECT_THAT(last.directory, testing::EndsWith("step-00000060"));
}

TEST_F(BestCheckpointTest, IsWhatAnotherRunBeginsWithThatIsGivenTheRun) {
  const RunOptions first = overshooting("first");
  const std::string best =
      fmt::format("{}/step-{:08}", RunPaths(first.run.directory).checkpoints, run(first).best_step);
  for (const std::string& source :
       {first.run.directory, RunPaths(first.run.directory).checkpoints + "/best"}) {
    RunOptions second = options("second", 1);
    fs::remove_all(second.run.directory);
    second.model = {.init = source};
    run(second);
    EXPECT_THAT(observer_.choices, Contains(HasSubstr("begins with " + best))) << source;
    const std::string kept = read_run_options(second.run.directory).model.init;
    EXPECT_TRUE(fs::equivalent(kept, best)) << "names what stays while the first run goes on: " << kept;
    EXPECT_FALSE(fs::is_symlink(kept)) << kept;
  }
}

TEST_F(BestCheckpointTest, IsSavedAtOnce) {
  RunOptions given = overshooting("run");
  given.checkpoint.every = {1000, optim::DurationUnit::Steps};
  RecordingObserver observer;
  observer.after_checkpoint = [&](std::uint64_t step) {
    EXPECT_EQ(observer.evaluations.back().first, step);
    if (step < 60) throw Killed();
  };
  EXPECT_THROW(train(given, observer, {}), Killed);
  EXPECT_EQ(observer.checkpoints, std::vector<std::uint64_t>{3});
}

TEST_F(BestCheckpointTest, IsTheSameInARunThatWasKilled) {
  const RunOptions whole = overshooting("whole");
  const TrainingResult result = run(whole);
  const RunOptions killed = overshooting("killed");
  run_killed_after(killed, {2, 7, 8, result.best_step, result.best_step + 1, 59});
  EXPECT_EQ(names(killed), names(whole));
  expect_same_checkpoint(killed, whole);
  const auto bytes_of_best = [](const RunOptions& given) {
    return data::contents_of(RunPaths(given.run.directory).checkpoints + "/best");
  };
  EXPECT_TRUE(bytes_of_best(killed) == bytes_of_best(whole));
}

TEST_F(BestCheckpointTest, IsTheEndOfARunThatStopsWhenWorse) {
  RunOptions given = overshooting("run");
  given.evaluation.stop_when_worse = 2;
  const TrainingResult result = run(given);
  EXPECT_EQ(result.end, TrainingResult::End::NoBetter);
  EXPECT_EQ(result.step, result.best_step + 6);
  ASSERT_LT(result.step, 60U);
  const auto before = newest_checkpoint(given);

  const TrainingResult again = run(given);
  EXPECT_EQ(again.end, TrainingResult::End::NoBetter);
  EXPECT_TRUE(observer_.steps.empty());
  EXPECT_EQ(again.step, result.step);
  EXPECT_TRUE(newest_checkpoint(given) == before);

  given.evaluation.stop_when_worse = 0;
  EXPECT_EQ(run(given).end, TrainingResult::End::Finished);
  EXPECT_EQ(observer_.steps.front().step, result.step + 1);
}

TEST_F(BestCheckpointTest, EndsAKilledRunThatStopsWhenWorseWhereItEndsAnother) {
  RunOptions whole = overshooting("whole");
  whole.evaluation.stop_when_worse = 2;
  const TrainingResult result = run(whole);
  RunOptions killed = overshooting("killed");
  killed.evaluation.stop_when_worse = 2;
  run_killed_after(killed, {5, result.best_step + 2, result.best_step + 4});
  expect_same_checkpoint(killed, whole);
}

TEST_F(BestCheckpointTest, IsNotLookedForWhereStepsAreSkipped) {
  RunOptions given = overshooting("run", 40);
  given.optimizer.learning_rate.peak = 1e30;
  given.evaluation.every = {1, optim::DurationUnit::Steps};
  given.run.max_skipped_steps = 3;
  EXPECT_THROW(run(given), base::UserError);
  for (const std::uint64_t step : observer_.checkpoints)
    EXPECT_FALSE(observer_.steps[step - 1].outcome.is_skipped) << step;
}

TEST_F(TrainingTest, ResumedOnAnotherDeviceSaysSo) {
  const RunOptions given = options("run", 20);
  run_and_stop(given, 7);
  const std::string path = RunPaths(given.run.directory).config;
  std::string config = io::read_file(path);
  const std::string here = "device = \"cpu\"";
  ASSERT_NE(config.find(here), std::string::npos) << config;
  io::write_file(path, config.replace(config.find(here), here.size(), "device = \"cuda\""));
  run(given);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("device was 'cuda' and is now 'cpu'")));
}

TEST_F(TrainingTest, ResumedKeepsWhatWasChosenForIt) {
  RunOptions given = options("run", 20);
  given.optimizer.learning_rate.peak.reset();
  given.data.global_batch.clear();
  given.run.device.reset();
  given.run.ranks = 2;  // on the CPU, whatever there is
  given.run.threads = 2;
  given.evaluation.every.reset();
  run_and_stop(given, 7);
  EXPECT_THAT(observer_.choices,
              testing::ElementsAre(HasSubstr("(--learning-rate)"), HasSubstr("(--global-batch)"),
                                   HasSubstr("(--bucket-bytes)")));
  run(read_run_options(given.run.directory));
  EXPECT_TRUE(observer_.choices.empty());
  EXPECT_EQ(observer_.steps.back().step, 20U);
}

TEST_F(TrainingTest, OfOneStepTrains) {
  RunOptions given = options("run", 1);
  given.evaluation.every = {1, optim::DurationUnit::Steps};
  run(given);
  EXPECT_EQ(observer_.steps.front().learning_rate, given.optimizer.learning_rate.peak);
  EXPECT_THAT(observer_.notes, testing::Not(Contains(HasSubstr("learning rate"))));
}

}  // namespace
}  // namespace plenum::train
