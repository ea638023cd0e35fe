#include "plenum/train/metrics.h"

#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/io/directory.h"
#include "plenum/io/file.h"

#include "tests/support/temporary_directory.h"

namespace plenum::train {
namespace {

constexpr const char* kFirst = "{\"step\":1}\n{\"step\":2}\n";

TEST(StepLines, DropsWhatLiesBehindAStep) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("lines", std::string(kFirst) + "{\"step\":3}\n{\"step\":4}\n");
  StepLines lines(path, 2);
  EXPECT_EQ(io::read_file(path), kFirst);
  lines.append("{\"step\":3,\"again\":true}");
  EXPECT_EQ(io::read_file(path), std::string(kFirst) + "{\"step\":3,\"again\":true}\n");
}

TEST(StepLines, DropsALineThatWasCut) {
  const test::TemporaryDirectory directory;
  for (const char* cut : {"{\"ste", "{\"step\":", "{\"step\":3}", "nonsense\n", "{}\n"}) {
    const std::string path = directory.write("lines", std::string(kFirst) + cut);
    const StepLines lines(path, 9);
    EXPECT_EQ(io::read_file(path), kFirst) << cut;
  }
}

TEST(StepLines, BeginsEmpty) {
  const test::TemporaryDirectory directory;
  for (const char* earlier : {"", "\n", "{\"step\":1}\n"}) {
    const std::string path = directory.write("lines", earlier);
    const StepLines lines(path, 0);
    EXPECT_EQ(io::read_file(path), "");
  }
}

/// A number of every line of a file, by its key.
std::vector<double> numbers_in(const std::string& path, const char* key) {
  std::vector<double> numbers;
  std::istringstream lines(io::read_file(path));
  for (std::string line; std::getline(lines, line);)
    numbers.push_back(nlohmann::json::parse(line).at(key).get<double>());
  return numbers;
}

StepReport report_of(std::uint64_t step) {
  StepReport report;
  report.step = step;
  report.work.tokens = 10;
  report.seconds = 0.5;
  return report;
}

TEST(Metrics, HaveTheEpochAndTheLengthOfTheRun) {
  const test::TemporaryDirectory directory;
  const RunPaths paths(directory.path());
  Metrics metrics(paths, {.step = 0}, {.num_steps = 9, .steps_per_epoch = 4}, {});
  for (std::uint64_t step = 1; step <= 3; ++step) metrics.add(report_of(step));
  EXPECT_THAT(numbers_in(paths.metrics, "epoch"), testing::ElementsAre(0.25, 0.5, 0.75));
  EXPECT_THAT(numbers_in(paths.metrics, "num_steps"), testing::Each(9));
}

TEST(Metrics, HaveNoLossOfAnObjectiveWithoutLabels) {
  const test::TemporaryDirectory directory;
  const RunPaths paths(directory.path());
  Metrics metrics(paths, {.step = 0}, {.num_steps = 9, .steps_per_epoch = 4},
                  {describe::masked_token_objective(9), describe::next_sentence_objective()});
  StepReport report = report_of(1);
  report.outcome.losses = {2.5, 0};
  report.outcome.num_losses = {3, 0};
  metrics.add(report);
  const nlohmann::json line = nlohmann::json::parse(io::read_file(paths.metrics));
  EXPECT_EQ(line.at("loss"), 2.5);
  EXPECT_EQ(line.at("mlm_loss"), 2.5);
  EXPECT_TRUE(line.at("nsp_loss").is_null());
  const std::vector<std::string> names = io::names_in(paths.tensorboard);
  ASSERT_EQ(names.size(), 1U);
  const std::string events = io::read_file(paths.tensorboard + "/" + names.front());
  EXPECT_THAT(events, testing::HasSubstr("train/mlm_loss"));
  EXPECT_THAT(events, testing::Not(testing::HasSubstr("train/nsp_loss")));
}

TEST(Metrics, CountWallTimeOnFromTheStepThatIsTakenUp) {
  const test::TemporaryDirectory directory;
  const RunPaths paths(directory.path());
  directory.write("metrics.jsonl",
                  "{\"step\":1,\"wall_seconds\":50.0}\n{\"step\":2,\"wall_seconds\":100.0}\n"
                  "{\"step\":3,\"wall_seconds\":150.0}\n");
  Metrics metrics(paths, {.step = 2}, {.num_steps = 9, .steps_per_epoch = 4}, {});
  metrics.add(report_of(3));
  metrics.add(report_of(4));
  const std::vector<double> seconds = numbers_in(paths.metrics, "wall_seconds");
  ASSERT_EQ(seconds.size(), 4U);
  EXPECT_GT(seconds[2], 100.0);
  EXPECT_LT(seconds[2], 150.0);
  EXPECT_GE(seconds[3], seconds[2]);
}

/// A process may be stopped within the evaluation that follows its last step: the next one does it, and may
/// be killed before its checkpoint says so.
TEST(Metrics, DropTheEvaluationThatTheCheckpointDoesNotCount) {
  const test::TemporaryDirectory directory;
  const RunPaths paths(directory.path());
  directory.write("evaluations.jsonl", "{\"step\":2}\n{\"step\":4}\n");
  Metrics metrics(paths, {.step = 4, .evaluated_step = 2}, {.num_steps = 9, .steps_per_epoch = 4}, {});
  metrics.add(4, Evaluation());
  EXPECT_THAT(numbers_in(paths.evaluations, "step"), testing::ElementsAre(2, 4));
}

TEST(Metrics, BeginWallTimeAnewWhereAnEarlierVersionWroteNone) {
  const test::TemporaryDirectory directory;
  const RunPaths paths(directory.path());
  directory.write("metrics.jsonl", "{\"step\":1}\n");
  Metrics metrics(paths, {.step = 1}, {.num_steps = 9, .steps_per_epoch = 4}, {});
  metrics.add(report_of(2));
  EXPECT_THAT(io::read_file(paths.metrics), testing::ContainsRegex("\"wall_seconds\":[0-9.e-]+}\n$"));
}

}  // namespace
}  // namespace plenum::train
