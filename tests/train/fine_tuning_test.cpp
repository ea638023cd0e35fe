// Runs that fine-tune: every task is learned, the same by all layouts and ranks, and resumed exactly.

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/comm/local/local_world.h"
#include "plenum/io/file.h"
#include "plenum/train/best_evaluation.h"
#include "plenum/train/run_directory.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/fine_tuning_fixture.h"

namespace plenum::train {
namespace {

using test::MadeTask;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class FineTuningOfEveryTask : public FineTuningTest, public testing::WithParamInterface<MadeTask> {};

INSTANTIATE_TEST_SUITE_P(Tasks, FineTuningOfEveryTask, testing::ValuesIn(test::made_tasks()),
                         [](const testing::TestParamInfo<MadeTask>& info) {
                           std::string name(describe::name_of(info.param.kind));
                           std::erase(name, '-');
                           return name;
                         });

/// Losses of every step within a ten-thousandth, and the same metric.
void expect_same_curve(const std::vector<double>& actual, const std::vector<double>& expected) {
  constexpr double kTolerance = 1e-4;
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step)
    ASSERT_NEAR(actual[step], expected[step], kTolerance * std::abs(expected[step])) << "step " << step;
}

TEST_P(FineTuningOfEveryTask, HasTheSameCurveAndMetricInEveryLayoutAndOnTwoRanks) {
  run(fine_tuning(GetParam(), "unpadded"));
  const std::vector<double> expected = losses();
  ASSERT_EQ(expected.size(), 24U) << "three epochs of 96 examples in batches of 12";
  ASSERT_EQ(observer_.evaluations.size(), 3U) << "after every epoch";
  const double score = last_score(GetParam().metric);
  const auto expect_same = [&](const RunOptions& other) {
    SCOPED_TRACE(other.run.directory);
    run(other);
    expect_same_curve(losses(), expected);
    // The correlation of predictions that hardly differ yet magnifies rounding; the others count.
    EXPECT_NEAR(last_score(GetParam().metric), score, 1e-3);
  };
  RunOptions packed = fine_tuning(GetParam(), "packed");
  packed.data.layout = data::Layout::Packed;
  expect_same(packed);
  RunOptions padded = fine_tuning(GetParam(), "padded");
  padded.data.layout = data::Layout::Padded;
  expect_same(padded);
  RunOptions ranks = fine_tuning(GetParam(), "ranks");
  ranks.run.ranks = 2;
  ranks.run.threads = 2;
  expect_same(ranks);
}

TEST_P(FineTuningOfEveryTask, SaysHowLongItsSequencesAre) {
  RunOptions options = fine_tuning(GetParam(), "run", 24);
  options.run.steps = {1, optim::DurationUnit::Steps};
  run(options);
  const std::string events = io::read_file(RunPaths(options.run.directory).events);
  const nlohmann::json lengths = nlohmann::json::parse(events.substr(0, events.find('\n'))).at("lengths");
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < lengths["bins"].size(); ++i) {
    sequences += lengths["bins"][i].get<std::uint64_t>();
    tokens += (i + 1) * lengths["bins"][i].get<std::uint64_t>();
  }
  EXPECT_EQ(lengths["max_length"], 40);
  EXPECT_EQ(lengths["bin_width"], 1);
  EXPECT_EQ(lengths["sequences"], sequences);
  EXPECT_EQ(lengths["tokens"], tokens) << "of sequences, each in the bin of its length";
}

/// Of a word of many pieces one window has the label, and others may have none.
TEST_F(FineTuningTest, TrainsOnWindowsWithoutALabelToo) {
  std::string word = "a";
  std::string text;
  for (int i = 0; i < 8; ++i) {
    word += "aaaaaa";
    text += fmt::format("{} B-X\na O\n\n", word);
  }
  const std::string model = test::write_random_bert(
      directory_ / "pieces", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n",
      {.width = 32, .num_layers = 2, .num_heads = 2, .mlp_width = 64, .max_positions = 64});
  const test::MadeTask task{describe::TaskKind::TokenClassification, ".conll", "f1"};
  for (const char* name : {"alone", "ranks", "stages"}) {
    RunOptions options = fine_tuning(task, name, 8);
    options.model.init = model;
    options.task.train = options.task.dev = directory_.write("pieces.conll", text);
    options.task.data.max_length = 8;
    options.task.data.stride = 1;
    options.data.global_batch = "2";
    if (name != std::string_view("alone")) options.run.ranks = options.run.threads.emplace(2);
    if (name == std::string_view("stages")) options.run.pp = 2;
    options.run.steps = {16, optim::DurationUnit::Steps};
    EXPECT_EQ(run(options).step, 16U) << name;
    std::vector<double> losses = this->losses();
    EXPECT_GT(std::ranges::count(losses, 0.0), 0) << name;
    EXPECT_GT(std::ranges::max(losses), 0.0) << name;
  }
}

TEST_P(FineTuningOfEveryTask, SharesEvaluationsAmongProcesses) {
  constexpr std::size_t kProcesses = 3;
  RunOptions threads = fine_tuning(GetParam(), "threads");
  threads.run.ranks = kProcesses;
  threads.run.threads = kProcesses;
  run(threads);
  RunOptions processes = threads;
  processes.run.directory = directory_ / "processes";
  comm::local::LocalWorld world(kProcesses);
  std::vector<RecordingObserver> observers(kProcesses);
  {
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < kProcesses; ++i) {
      all.emplace_back([&, i] {
        const std::unique_ptr<comm::Communicator> ranks = world.communicator(base::Rank::at(i));
        train(processes, observers[i], {},
              [&](const RunOptions&, const TrainingData&) { return Processes(*ranks); });
      });
    }
  }
  for (const RecordingObserver& observer : observers) {
    ASSERT_EQ(observer.evaluations.size(), observer_.evaluations.size());
    for (std::size_t i = 0; i < observer_.evaluations.size(); ++i)
      EXPECT_EQ(observer.evaluations[i].second.scores, observer_.evaluations[i].second.scores);
  }
  expect_same_checkpoint(processes, threads);
}

TEST_P(FineTuningOfEveryTask, EndsWithTheSameBytesIfItIsStoppedAndResumed) {
  const RunOptions whole = fine_tuning(GetParam(), "whole");
  const TrainingResult expected = run(whole);
  const RunOptions stopped = fine_tuning(GetParam(), "stopped");
  for (const std::uint64_t step : {1, 8, 13})
    EXPECT_EQ(run_and_stop(stopped, step).end, TrainingResult::End::Stopped);
  const TrainingResult actual = run(stopped);
  EXPECT_EQ(actual.end, TrainingResult::End::Finished);
  EXPECT_EQ(actual.best_step, expected.best_step);
  expect_same_checkpoint(stopped, whole);
}

TEST_P(FineTuningOfEveryTask, IsLearnedAndLeavesPredictionsAndAModelBehind) {
  RunOptions options = fine_tuning(GetParam(), "learned", 480);
  options.run.steps = {6, optim::DurationUnit::Epochs};
  options.task.test = directory_.write("test" + GetParam().extension, without_labels(GetParam(), 5, 20));
  const TrainingResult result = run(options);
  ASSERT_TRUE(result.best_score.has_value());
  EXPECT_EQ(result.best_score->name, GetParam().metric);
  EXPECT_GT(result.best_score->value, 0.9);

  base::SilentProgress silent;
  const FineTunedModel model = finish_fine_tuning(options.run.directory, silent);
  ASSERT_EQ(model.labelled.size(), 2U);
  const auto& dev = model.labelled.front();
  EXPECT_DOUBLE_EQ(dev.scores.front().value, result.best_score->value) << "the best checkpoint's";
  EXPECT_EQ(dev.num_examples, 240U);
  EXPECT_TRUE(model.labelled.back().scores.empty()) << "of examples without labels";
  const std::string lines = io::read_file(model.labelled.back().file);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 20);

  const ModelSource exported = find_model(model.directory, silent);
  EXPECT_EQ(exported.config.task->labels, model.source.config.task->labels);
  const FilePredictions again = predict_file(exported, options.task.dev, options.task.data,
                                             {.num_threads = 1}, [](std::string_view) {});
  EXPECT_EQ(print_predictions(again), io::read_file(dev.file)) << "by the exported model";
}

class FineTuning : public FineTuningTest {
 protected:
  RunOptions classification(std::string_view run) const {
    return fine_tuning(test::made_tasks().front(), run);
  }
};

TEST_F(FineTuning, SaysWhatIsNewWhatIsNotUsedAndWhatItChose) {
  RunOptions options = classification("run");
  options.optimizer.learning_rate.peak.reset();
  options.task.data.max_length.reset();
  run(options);
  EXPECT_THAT(observer_.notes, Contains(AllOf(HasSubstr("initialized randomly: "),
                                              HasSubstr("classifier.weight"), HasSubstr("bert.pooler"))));
  EXPECT_THAT(observer_.notes, Contains(testing::ContainsRegex("not used from .*: cls.predictions")));
  EXPECT_THAT(observer_.choices, Contains(HasSubstr("learning rate 5e-05, by the size of the model")));
  EXPECT_THAT(observer_.choices, Contains(HasSubstr("at most 64 tokens (--max-length)")))
      << "no more than the model can read";
  EXPECT_THAT(observer_.choices, Contains(HasSubstr("the best accuracy (--metric)")));
}

/// A word longer than a window leaves windows in which no word begins.
TEST_F(FineTuning, RecordsNoLossForAStepWithoutALabel) {
  const MadeTask task{.kind = describe::TaskKind::TokenClassification, .extension = ".conll", .metric = "f1"};
  RunOptions options = fine_tuning(task, "run", 4);
  std::ofstream(options.task.train, std::ios::app) << "\n" << std::string(50, '.') << " O\n";
  options.task.data.max_length = 16;
  options.data.global_batch = "1";
  options.run.steps = {1, optim::DurationUnit::Epochs};
  run(options);
  std::size_t num_unlabelled = 0;
  std::ifstream lines(RunPaths(options.run.directory).metrics);
  std::size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    const nlohmann::json step = nlohmann::json::parse(line);
    const bool is_unlabelled = observer_.steps.at(i).work.labels[0] == 0;
    num_unlabelled += is_unlabelled ? 1 : 0;
    EXPECT_EQ(step.at("loss").is_null(), is_unlabelled) << line;
    EXPECT_EQ(step.at("task_loss").is_null(), is_unlabelled) << line;
    EXPECT_FALSE(step.at("skipped").get<bool>()) << line;
  }
  EXPECT_GT(num_unlabelled, 0U);
  EXPECT_LT(num_unlabelled, i);
}

TEST_F(FineTuning, IsRefusedOnFilesThatChanged) {
  RunOptions options = classification("run");
  run_and_stop(options, 4);
  const std::string dev = io::read_file(options.task.dev);
  std::ofstream(options.task.dev, std::ios::app) << "praise\tthe good tree\n";
  test::expect_user_error([&] { run(options); }, "was trained on other data than");
  options.task.dev = directory_.write("moved.tsv", dev);
  EXPECT_EQ(run(options).end, TrainingResult::End::Finished) << "the same bytes may lie elsewhere";
}

TEST_F(FineTuning, ResumesWithoutTheModelItBeganWith) {
  const RunOptions options = classification("run");
  run_and_stop(options, 4);
  std::filesystem::remove_all(model_);
  std::filesystem::remove_all(model_ + "-tokenizer");
  EXPECT_EQ(run(options).end, TrainingResult::End::Finished);
}

TEST_F(FineTuning, BeginsWithTheBestCheckpointOfARun) {
  run(classification("first"));
  RunOptions second = classification("second");
  second.model.init = directory_ / "first";
  run(second);
  EXPECT_THAT(observer_.choices, Contains(HasSubstr("begins with " + (directory_ / "first"))));
}

TEST_F(FineTuning, EndsEarlyWhereTheMetricNoLongerGrows) {
  RunOptions options = classification("run");
  options.run.steps = {40, optim::DurationUnit::Epochs};
  options.evaluation.stop_when_worse = 2;
  const TrainingResult result = run(options);
  EXPECT_EQ(result.end, TrainingResult::End::NoBetter);
  EXPECT_LT(result.step, result.num_steps);
  EXPECT_EQ(result.best_step + 16, result.step) << "two epochs of eight steps later";
}

TEST_F(FineTuning, RunsWithoutAnythingToEvaluateOn) {
  RunOptions options = classification("run");
  options.task.dev.clear();
  const TrainingResult result = run(options);
  EXPECT_FALSE(result.best_loss.has_value());
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("nothing is evaluated; add --dev FILE")));
}

TEST_F(FineTuning, RefusesWhatDoesNotGoTogether) {
  const auto expect = [this](const auto& change, const std::string& error) {
    RunOptions options = classification("refused");
    change(options);
    test::expect_user_error([&] { run(options); }, error);
    EXPECT_FALSE(std::filesystem::exists(options.run.directory)) << error;
  };
  expect([](RunOptions& options) { options.task.metric = "pearson"; },
         "--metric must be accuracy, f1, f1_macro, matthews or loss");
  expect([](RunOptions& options) { options.task.train.clear(); }, "add --train FILE");
  expect([](RunOptions& options) { options.model.init.clear(); }, "give --model DIR");
  expect([](RunOptions& options) { options.model.init = "/nowhere"; }, "there is no directory /nowhere");
  expect([](RunOptions& options) { options.task.data.max_length = 65; }, "65");
  expect(
      [this](RunOptions& options) {
        options.task.dev = directory_.write("other.tsv", "label\ttext\nneutral\tthe tree\n");
      },
      "neutral");
  expect([this](RunOptions& options) { options.task.test = directory_ / "none.tsv"; }, "none.tsv");
}

Evaluation evaluation_of(double loss, double accuracy) {
  Evaluation evaluation;
  evaluation.objectives.push_back(
      {.objective = describe::task_objective({.labels = {"a", "b"}}), .loss = loss});
  evaluation.scores = {{"accuracy", accuracy}};
  return evaluation;
}

TEST(BestEvaluation, IsThatOfTheHighestMetricOrTheLowestLoss) {
  TrainingState by_metric{.step = 1};
  TrainingState by_loss{.step = 1};
  const auto count = [&](std::uint64_t step, double loss, double accuracy) {
    by_metric.step = by_loss.step = step;
    count_evaluation(evaluation_of(loss, accuracy), "accuracy", by_metric);
    count_evaluation(evaluation_of(loss, accuracy), kLossMetric, by_loss);
  };
  count(1, 0.9, 0.5);
  count(2, 0.5, 0.4);
  count(3, 0.7, 0.8);
  count(4, 0.7, 0.8);
  EXPECT_EQ(by_metric.best_step, 3U) << "the first of equals";
  EXPECT_EQ(by_metric.worse_in_a_row, 1U);
  EXPECT_EQ(best_text(by_metric), "dev accuracy (0.8000)");
  EXPECT_EQ(by_loss.best_step, 2U);
  EXPECT_EQ(by_loss.worse_in_a_row, 2U);
  EXPECT_EQ(best_text(by_loss), "held-out loss (0.5000)");
  count(5, 0.6, 0.8);
  EXPECT_EQ(by_metric.best_step, 5U) << "of equals that of the lower loss";
}

TEST(BestEvaluation, IsNoneThatIsNotFinite) {
  TrainingState state{.step = 1};
  count_evaluation(evaluation_of(0.5, std::numeric_limits<double>::quiet_NaN()), "accuracy", state);
  EXPECT_FALSE(state.best_loss.has_value());
  EXPECT_EQ(state.worse_in_a_row, 1U);
}

TEST(BestEvaluation, IsKeptInTheStateOfACheckpoint) {
  TrainingState state{.step = 7};
  count_evaluation(evaluation_of(0.5, 0.75), "accuracy", state);
  EXPECT_EQ(parse_training_state(to_json_object(state), "state"), state);
  nlohmann::json object = to_json_object(state);
  object["best_score"] = 3;
  test::expect_user_error([&] { parse_training_state(object, "state"); }, "best_score must be an object");
}

}  // namespace
}  // namespace plenum::train
