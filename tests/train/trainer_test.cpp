#include "plenum/train/trainer.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/train/run_directory.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The lines of metrics.jsonl without what depends on the clock.
std::vector<nlohmann::json> timeless_metrics(const RunOptions& options) {
  std::istringstream text(io::read_file(RunPaths(options.run.directory).metrics));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    object.erase("seconds");
    object.erase("tokens_per_second");
    object.erase("wall_seconds");
    lines.push_back(std::move(object));
  }
  return lines;
}

TEST_F(TrainingTest, LossGoesDownAndEverythingIsWritten) {
  const RunOptions given = options("run", 30);
  const TrainingResult result = run(given);
  EXPECT_EQ(result.end, TrainingResult::End::Finished);
  ASSERT_EQ(observer_.steps.size(), 30U);
  EXPECT_LT(observer_.steps.back().outcome.loss(), observer_.steps.front().outcome.loss() - 0.3);
  EXPECT_THAT(observer_.checkpoints, ElementsAre(5, 10, 15, 20, 25, 30));
  ASSERT_EQ(observer_.evaluations.size(), 3U);
  EXPECT_LT(observer_.evaluations.back().second.words().loss,
            observer_.evaluations.front().second.words().loss);
  EXPECT_EQ(result.evaluation->words().loss, observer_.evaluations.back().second.words().loss);
  EXPECT_EQ(CheckpointStore(given.run.directory, 1).list().size(), result.best_step < 25 ? 3U : 2U);
  EXPECT_TRUE(std::filesystem::exists(given.run.directory + "/tokenizer/vocab.txt"));
  EXPECT_FALSE(std::filesystem::is_empty(given.run.directory + "/tensorboard"));

  const std::vector<nlohmann::json> metrics = timeless_metrics(given);
  ASSERT_EQ(metrics.size(), 30U);
  EXPECT_EQ(metrics[29].at("step"), 30);
  EXPECT_EQ(metrics[29].at("loss"), observer_.steps.back().outcome.loss());
  EXPECT_EQ(metrics[29].at("padded_tokens"), 0);
  for (const char* key : {"mlm_loss", "lr", "gradient_norm", "real_tokens", "sequences", "flops", "skipped",
                          "num_steps", "epoch"}) {
    EXPECT_TRUE(metrics[0].contains(key)) << key;
  }
  EXPECT_GT(result.memory.planned_bytes, 0U);
}

TEST_F(TrainingTest, AStoppedRunEndsWithTheBytesOfOneThatWasNot) {
  const RunOptions whole = options("whole", 20);
  run(whole);
  const RunOptions parts = options("parts", 20);
  const TrainingResult stopped = run_and_stop(parts, 7);
  EXPECT_EQ(stopped.end, TrainingResult::End::Stopped);
  EXPECT_GE(stopped.step, 7U);
  EXPECT_LT(stopped.step, 10U);
  EXPECT_THAT(stopped.checkpoint, HasSubstr("step-0000000"));
  EXPECT_EQ(run(parts).end, TrainingResult::End::Finished);
  EXPECT_EQ(observer_.summary.first_step, stopped.step);
  EXPECT_EQ(newest_checkpoint(parts), newest_checkpoint(whole));
  EXPECT_EQ(timeless_metrics(parts), timeless_metrics(whole));
}

TEST_F(TrainingTest, MeasuresMatrixProductsWhereProgressIsShown) {
  RunOptions given = options("run", 1);
  run(given);
  EXPECT_EQ(observer_.summary.product_rate, 0);
  given.run.process.quiet = false;
  given.run.steps.amount = 2;
  run(given);
  EXPECT_GT(observer_.summary.product_rate, 0);
}

TEST_F(TrainingTest, RefusesDataThatWasAlteredAndTouchesNothing) {
  const RunOptions given = options("run", 20);
  run_and_stop(given, 7);
  const auto before = newest_checkpoint(given);
  for (const std::string name : {"train.bin", "train.sequences", "holdout.bin"}) {
    const std::string path = dataset_ + "/" + name;
    const std::string bytes = io::read_file(path);
    std::string altered = bytes;
    altered.back() = static_cast<char>(altered.back() ^ 1);
    io::write_file(path, altered);
    test::expect_user_error([&] { run(given); }, name + " is damaged");
    test::expect_user_error([&] { run(options("other")); }, name + " is damaged");
    io::write_file(path, bytes);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "other"));
  EXPECT_EQ(newest_checkpoint(given), before);
  EXPECT_EQ(run(given).end, TrainingResult::End::Finished);
}

TEST_F(TrainingTest, AFinishedRunIsLeftAlone) {
  const RunOptions given = options("run", 3);
  run(given);
  const auto before = newest_checkpoint(given);
  EXPECT_EQ(run(given).end, TrainingResult::End::Finished);
  EXPECT_TRUE(observer_.steps.empty());
  EXPECT_EQ(newest_checkpoint(given), before);
  EXPECT_EQ(timeless_metrics(given).size(), 3U);
}

TEST_F(TrainingTest, ARunThatIsLongerThanAskedForStaysWhatItIs) {
  const RunOptions given = options("run", 6);
  run(given);
  const std::string config = io::read_file(RunPaths(given.run.directory).config);
  const TrainingResult result = run(options("run", 4));
  EXPECT_EQ(result.first_step, 6U);
  EXPECT_EQ(result.step, 6U);
  EXPECT_EQ(result.num_steps, 4U);
  EXPECT_EQ(io::read_file(RunPaths(given.run.directory).config), config);
}

TEST_F(TrainingTest, TellsTheBestEvaluationOfTheWholeRun) {
  RunOptions given = options("run", 4);
  given.evaluation.every = {1, optim::DurationUnit::Steps};
  run(given);
  std::vector<std::pair<std::uint64_t, Evaluation>> evaluations = observer_.evaluations;
  given.run.steps = {8, optim::DurationUnit::Steps};
  const TrainingResult result = run(given);
  std::ranges::copy(observer_.evaluations, std::back_inserter(evaluations));
  ASSERT_EQ(evaluations.size(), 8U);
  const auto& [step, best] =
      *std::ranges::min_element(evaluations, {}, [](const auto& entry) { return entry.second.loss(); });
  EXPECT_EQ(result.best_loss, best.loss());
  EXPECT_EQ(result.best_step, step);
}

TEST_F(TrainingTest, ThreadsAndRecomputationChangeNoBit) {
  const RunOptions plain = options("plain", 6);
  run(plain);
  for (const schedule::Recomputation recompute :
       {schedule::Recomputation::Mlp, schedule::Recomputation::Full}) {
    RunOptions other = options(recompute == schedule::Recomputation::Mlp ? "mlp" : "full", 6);
    other.run.recompute = recompute;
    other.run.threads = 2;
    run(other);
    EXPECT_EQ(newest_checkpoint(other), newest_checkpoint(plain));
  }
}

TEST_F(TrainingTest, ACutCheckpointIsNamedAndTheOneBeforeIsTakenUp) {
  const RunOptions given = options("run", 10);
  run(given);
  const auto expected = newest_checkpoint(given);
  const std::string weights = CheckpointStore(given.run.directory, 1).list().back() + "/model.safetensors";
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) / 2);
  run(given);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("step-00000010")));
  EXPECT_EQ(observer_.summary.first_step, 5U);
  EXPECT_EQ(newest_checkpoint(given), expected);
}

TEST_F(TrainingTest, AFullDiskStopsTheRunOrIsSaidAndPassedOver) {
  RunOptions given = options("run", 9);
  run(given);
  const std::uint64_t size = newest_checkpoint(given).at("optimizer.safetensors").size();
  RunOptions stops = options("stops", 9);
  {
    const test::FileSizeLimit full_disk(size - 1);
    test::expect_user_error([&] { run(stops); }, "a checkpoint of step 5 could not be written");
    EXPECT_THAT(observer_.notes, Not(Contains(HasSubstr("could not be written")))) << "said twice";
  }
  RunOptions goes_on = options("goes-on", 9);
  goes_on.checkpoint.on_full_disk = OnFullDisk::Continue;
  RecordingObserver observer;
  {
    std::optional<test::FileSizeLimit> full_disk(size - 1);
    observer.after_step = [&](const StepReport& report) {
      if (report.step == 7) full_disk.reset();
    };
    train(goes_on, observer, {});
  }
  EXPECT_THAT(observer.notes, Contains(HasSubstr("a checkpoint of step 5 could not be written")));
  EXPECT_EQ(newest_checkpoint(goes_on), newest_checkpoint(given));
}

TEST_F(TrainingTest, MetricsThatCannotBeWrittenAreSaidOnceUntilTheyCanBeAgain) {
  RunOptions given = options("run", 30);
  given.checkpoint.on_full_disk = OnFullDisk::Continue;
  given.checkpoint.every = {0, optim::DurationUnit::Steps};
  given.evaluation.every = {0, optim::DurationUnit::Steps};
  RecordingObserver observer;
  std::optional<test::FileSizeLimit> full_disk;
  observer.after_step = [&](const StepReport& report) {
    if (report.step == 3 || report.step == 15) full_disk.emplace(16);
    if (report.step == 10 || report.step == 20) full_disk.reset();
  };
  train(given, observer, {});
  const auto num_notes = [&](std::string_view part) {
    return std::ranges::count_if(
        observer.notes, [&](const std::string& note) { return note.find(part) != std::string::npos; });
  };
  EXPECT_EQ(num_notes("metrics of step 4 could not be written"), 1);
  EXPECT_EQ(num_notes("metrics of step 16 could not be written"), 1);
  EXPECT_EQ(num_notes("could not be written"), 2);
  EXPECT_EQ(num_notes("metrics are written again, from step 11 on"), 1);
  EXPECT_EQ(num_notes("metrics are written again"), 2);
}

TEST_F(TrainingTest, SaysWhatHoldsForTheRun) {
  RunOptions given = options("run", 20);
  given.optimizer.learning_rate.warmup = {5, optim::DurationUnit::Steps};
  given.evaluation.every = {1, optim::DurationUnit::Steps};
  given.checkpoint.every = {90, optim::DurationUnit::Seconds};
  const TrainingResult result = run(given);
  const RunSummary& summary = observer_.summary;
  EXPECT_EQ(summary.model_name, "bert-tiny");
  EXPECT_EQ(summary.learning_rate, 1e-2);
  EXPECT_EQ(summary.warmup_steps, 5U);
  EXPECT_EQ(summary.learning_rate_schedule, "linear");
  EXPECT_EQ(summary.checkpoints, given.run.directory + "/checkpoints");
  EXPECT_EQ(summary.checkpoint_times, "every 90s and at the end");
  EXPECT_EQ(summary.evaluation_times, "every step and at the end");
  EXPECT_EQ(result.loss, observer_.steps.back().outcome.loss());
  std::uint64_t tokens = 0;
  for (const StepReport& report : observer_.steps) tokens += static_cast<std::uint64_t>(report.work.tokens);
  EXPECT_EQ(result.tokens, tokens);
  EXPECT_GT(result.seconds, 0);
}

TEST_F(TrainingTest, StepsThatAreNotFiniteAreSkippedAndTooManyEndTheRun) {
  RunOptions given = options("run", 40);
  given.optimizer.learning_rate.peak = 1e30;
  given.optimizer.learning_rate.warmup = {2, optim::DurationUnit::Steps};
  given.run.max_skipped_steps = 3;
  test::expect_user_error([&] { run(given); }, "3 steps in a row were skipped");
  ASSERT_GE(observer_.steps.size(), 3U);
  EXPECT_TRUE(observer_.steps.back().outcome.is_skipped);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("is skipped: loss")));
}

TEST_F(TrainingTest, StopsWhenItsTimeIsUp) {
  RunOptions given = options("run", 1e6);
  given.run.process.stop_after = "0.2s";
  const TrainingResult result = run(given);
  EXPECT_EQ(result.end, TrainingResult::End::Stopped);
  EXPECT_EQ(CheckpointStore(given.run.directory, 1).list().back(), result.checkpoint);
}

TEST_F(TrainingTest, RefusesWhatDoesNotFitIntoMemoryBeforeTheFirstStep) {
  RunOptions given = options("run");
  given.model.width = 4096;
  given.model.heads = 16;
  given.model.mlp_width = 1 << 20;
  given.model.layers = 64;
  test::expect_user_error([&] { run(given); }, "of memory and");
  EXPECT_TRUE(observer_.steps.empty());
}

TEST_F(TrainingTest, RefusesDataOfAnotherVocabulary) {
  const RunOptions first = options("run");
  run(first);
  RunOptions other = options("other");
  other.data.directory =
      prepare("wide", data::Objective::MaskedLanguageModel, data::letter_vocabulary() + "more\n");
  other.model = {};
  other.model.init = CheckpointStore(first.run.directory, 1).list().back();
  test::expect_user_error([&] { run(other); }, "the dataset has 60 tokens and the model 59");
}

TEST_F(TrainingTest, StartsFromADirectoryAndSaysWhatIsNew) {
  const RunOptions first = options("run");
  run(first);
  RunOptions other = options("other", 2);
  other.data.directory = prepare("pairs", data::Objective::WithNextSentence);
  other.model = {};
  other.model.init = CheckpointStore(first.run.directory, 1).list().back();
  run(other);
  EXPECT_THAT(observer_.notes,
              Contains(AllOf(HasSubstr("initialized randomly"), HasSubstr("cls.seq_relationship.weight"))));
  EXPECT_LT(observer_.steps.front().outcome.losses[0], 4.0);
  EXPECT_GT(observer_.steps.front().outcome.losses[1], 0.3);
}

TEST_F(TrainingTest, DrawsTheStepThatIsAskedFor) {
  RunOptions given = options("run", 3);
  given.run.ranks = 2;
  given.run.threads = 2;
  given.run.process.trace = directory_ / "step.json";
  given.run.process.trace_step = 2;
  run(given);
  const nlohmann::json trace = nlohmann::json::parse(io::read_file(given.run.process.trace));
  EXPECT_GT(trace.at("traceEvents").size(), 8U);
  EXPECT_THAT(trace.dump(), AllOf(HasSubstr("bert-tiny, step 2, measured"), HasSubstr("waiting for data"),
                                  HasSubstr("forward, micro-batch 0, layers 0 to 1")));
  EXPECT_THAT(observer_.notes, Not(Contains(HasSubstr("will not be drawn"))));
}

TEST_F(TrainingTest, DrawsNoMicroBatchesThatAreEmpty) {
  RunOptions given = options("run", 15);  // the last step of the epoch is shorter than the others
  given.run.process.trace = directory_ / "step.json";
  given.run.process.trace_step = 15;
  run(given);
  ASSERT_EQ(observer_.summary.steps_per_epoch, 15U);
  const nlohmann::json trace = nlohmann::json::parse(io::read_file(given.run.process.trace));
  std::size_t num_forwards = 0;
  for (const nlohmann::json& event : trace.at("traceEvents"))
    num_forwards += event.at("ph") == "X" && event.at("name").get<std::string>().starts_with("forward");
  EXPECT_GT(num_forwards, 0U);
  EXPECT_LT(num_forwards, observer_.summary.micro_batches_per_rank);
}

TEST_F(TrainingTest, LaysAStepOverWhatEarlierStepsPredict) {
  RunOptions given = options("run", 10);
  given.run.ranks = 2;
  given.run.threads = 2;
  given.run.process.overlay = directory_ / "overlay.json";
  given.run.process.trace_step = 5;
  run(given);
  const nlohmann::json overlay = nlohmann::json::parse(io::read_file(given.run.process.overlay));
  EXPECT_EQ(overlay.at("title"), "bert-tiny, step 5, data-parallel");
  EXPECT_GT(overlay.at("predicted_step_seconds"), 0);
  EXPECT_GT(overlay.at("actions").size(), 8U);
  for (const nlohmann::json& action : overlay.at("actions")) {
    const double predicted =
        action.at("predicted")[1].get<double>() - action.at("predicted")[0].get<double>();
    const double measured = action.at("measured")[1].get<double>() - action.at("measured")[0].get<double>();
    EXPECT_NEAR(action.at("error_seconds").get<double>(), measured - predicted, 1e-8);
  }
  ASSERT_EQ(observer_.tables.size(), 1U);
  EXPECT_THAT(observer_.tables.front(), AllOf(HasSubstr("forward"), HasSubstr("predicted")));
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("the time of 5 steps was predicted from those before")));
  given.run.process.overlay = directory_ / "overlay.txt";
  test::expect_user_error([&] { run(given); }, "--overlay must end with .svg or .json");
  given.run.process.overlay = directory_ / "overlay.svg";
  given.run.process.trace_step = 2;
  test::expect_user_error([&] { run(given); }, "--overlay needs --trace-step of at least 3");
}

TEST_F(TrainingTest, SaysHowWellStepsWerePredictedWhereTheRunEndsEarly) {
  RunOptions given = options("run", 6);
  given.run.process.overlay = directory_ / "overlay.svg";
  given.run.process.trace_step = 5;
  run(given);
  EXPECT_TRUE(std::filesystem::exists(given.run.process.overlay));
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("the time of 2 steps was predicted")));
}

/// The first evaluation is the best so far, and no later one of a learning rate of 0 is better.
TEST_F(TrainingTest, SaysHowWellStepsWerePredictedOrThatNothingIsDrawnWhereEvaluationsEndTheRun) {
  RunOptions given = options("drawn", 20);
  given.optimizer.learning_rate.peak = 1e-30;
  given.evaluation.every = {3, optim::DurationUnit::Steps};
  given.evaluation.stop_when_worse = 1;
  given.run.process.overlay = directory_ / "overlay.svg";
  given.run.process.trace_step = 5;
  EXPECT_EQ(run(given).step, 6U);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("overlay.svg: the time of 2 steps was predicted")));
  given.run.directory = directory_ / "undrawn";
  given.run.process.overlay = directory_ / "late.svg";
  given.run.process.trace = directory_ / "late.json";
  given.run.process.trace_step = 7;
  EXPECT_EQ(run(given).step, 6U);
  for (const std::string& path : {given.run.process.overlay, given.run.process.trace}) {
    EXPECT_THAT(observer_.notes,
                Contains(path + " is not written: step 7 was to be drawn, and the run ended after step 6"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST_F(TrainingTest, SaysThatNothingIsDrawnWhereTheRunIsStoppedBefore) {
  RunOptions given = options("run", 20);
  given.run.process.overlay = directory_ / "overlay.svg";
  const TrainingResult stopped = run_and_stop(given, 4);
  EXPECT_THAT(
      observer_.notes,
      Contains(fmt::format("{} is not written: step 8 was to be drawn, and the run ended after step {}",
                           given.run.process.overlay, stopped.step)));
}

TEST_F(TrainingTest, SaysNothingOfABeginningWhereTheRunIsFinished) {
  const RunOptions given = options("run", 4);
  run(given);
  EXPECT_EQ(observer_.summary.num_steps, 4U);
  EXPECT_EQ(run(given).end, TrainingResult::End::Finished);
  EXPECT_EQ(observer_.summary.num_steps, 0U);
  EXPECT_TRUE(observer_.notes.empty());
}

TEST_F(TrainingTest, RefusesADrawingThatCouldNotBeWrittenBeforeTheFirstStep) {
  RunOptions given = options("run", 5);
  for (const char* name : {"missing/step.svg", "data.svg"}) {
    std::filesystem::create_directories(directory_ / "data.svg");
    given.run.process.trace = directory_ / name;
    test::expect_user_error([&] { run(given); }, std::string("cannot write ") + given.run.process.trace);
    EXPECT_TRUE(observer_.steps.empty());
  }
  given.run.process.trace = given.run.directory + "/step.svg";
  run(given);
  EXPECT_TRUE(std::filesystem::exists(given.run.process.trace));
}

TEST_F(TrainingTest, SaysBeforeTheFirstStepThatADrawingLiesBehindTheLast) {
  RunOptions given = options("run", 5);
  given.run.process.trace = directory_ / "step.svg";
  given.run.process.trace_step = 6;
  run_and_stop(given, 3);
  EXPECT_THAT(observer_.notes,
              Contains(HasSubstr("will not be drawn: --trace-step is 6, and 5 steps are left")));
  given.run.process.trace_step = 2;
  run(given);
  EXPECT_THAT(observer_.notes,
              Contains(HasSubstr("will not be drawn: --trace-step is 2, and 1 step is left")));
  EXPECT_FALSE(std::filesystem::exists(given.run.process.trace));
}

}  // namespace
}  // namespace plenum::train
