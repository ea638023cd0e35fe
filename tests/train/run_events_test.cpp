#include "plenum/train/run_events.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>

#include "plenum/io/directory.h"
#include "plenum/train/run_directory.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<json> lines_in(const std::string& path) {
  std::istringstream text(io::read_file(path));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<std::string> kinds_in(const std::string& path) {
  std::vector<std::string> kinds;
  for (const json& line : lines_in(path)) kinds.push_back(line["kind"]);
  return kinds;
}

/// A file in a directory of its own, and an observer behind the events.
class RunEventsTest : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "events.jsonl";
  RecordingObserver observer_;
  HangWatch watch_{std::chrono::minutes(1), [](const std::string&) {}};
};

TEST_F(RunEventsTest, BeginWithTheBeginningAndThenWhatWasToldBefore) {
  RunEvents events(observer_);
  events.on_note("told before");
  events.open(path_, watch_,
              {.step = 20, .checkpoint = "checkpoints/step-20", .details = {{"num_steps", 100}}});
  events.on_choice("chosen");
  const std::vector<json> lines = lines_in(path_);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["kind"], "resume");
  EXPECT_EQ(lines[0]["num_steps"], 100);
  EXPECT_EQ(lines[1]["text"], "told before");
  EXPECT_EQ(lines[1]["step"], 20);
  EXPECT_EQ(lines[2]["kind"], "choice");
  EXPECT_GT(lines[2]["time"], 1.7e9);
  EXPECT_THAT(observer_.notes, ElementsAre("told before"));
  EXPECT_THAT(observer_.choices, ElementsAre("chosen"));
}

TEST_F(RunEventsTest, AreAddedBehindThoseOfTheProcessBefore) {
  io::write_file(path_, "{\"kind\":\"begin\",\"step\":0}\n{\"kind\":\"no");  // killed while it wrote
  RunEvents events(observer_);
  events.open(path_, watch_, {});
  EXPECT_THAT(kinds_in(path_), ElementsAre("begin", "begin"));
}

TEST_F(RunEventsTest, ThatCannotBeWrittenAreWrittenLater) {
  const std::string path = directory_ / "later/events.jsonl";
  RunEvents events(observer_);
  events.open(path, watch_, {});
  events.on_note("one");
  io::make_directories(directory_ / "later");
  events.on_note("two");
  EXPECT_THAT(kinds_in(path), ElementsAre("begin", "note", "note"));
}

TEST_F(RunEventsTest, PassOnWhatHangsWithoutWriting) {
  RunEvents events(observer_);
  events.open(path_, watch_, {});
  events.on_hang("the disk hangs");
  EXPECT_THAT(observer_.hangs, ElementsAre("the disk hangs"));
  EXPECT_THAT(kinds_in(path_), ElementsAre("begin"));
}

TEST_F(RunEventsTest, AreLinesWhateverTheirTextHas) {
  RunEvents events(observer_);
  events.open(path_, watch_, {});
  events.on_note("two\nlines and \xff bytes");
  EXPECT_THAT(std::string(lines_in(path_)[1]["text"]), HasSubstr("two\nlines and"));
}

TEST_F(TrainingTest, RunsKeepTheirEvents) {
  RunOptions options = this->options("run", 8);
  RecordingObserver observer;
  std::stop_source stop;
  observer.after_step = [&](const StepReport& report) {
    if (report.step == 3) stop.request_stop();
  };
  train(options, observer, stop.get_token());
  observer.after_step = {};
  train(options, observer, {});
  train(options, observer, {});  // nothing is left to be done, and nothing to be said
  const std::string path = RunPaths(options.run.directory).events;
  std::vector<std::string> kinds = kinds_in(path);
  std::erase_if(kinds, [](const std::string& kind) { return kind == "choice" || kind == "note"; });
  EXPECT_THAT(kinds,
              ElementsAre("begin", "checkpoint", "stop", "resume", "checkpoint", "checkpoint", "finish"));
  const json begin = lines_in(path).front();
  EXPECT_EQ(begin["num_steps"], 8);
  EXPECT_EQ(begin["layout"]["ranks"], 1);
  EXPECT_GT(begin["memory"]["planned_bytes"], 0);
  EXPECT_EQ(begin["lengths"]["max_length"], 24);
  std::uint64_t sequences = 0;
  for (const std::uint64_t count : begin["lengths"]["bins"]) sequences += count;
  EXPECT_EQ(begin["lengths"]["sequences"], sequences);
  EXPECT_FALSE(begin.contains("packing"));
  EXPECT_FALSE(begin.contains("balance"));
}

TEST_F(TrainingTest, RunsSayHowTheyPackAndShareTheirWork) {
  RunOptions options = this->options("run", 2);
  options.data.layout = data::Layout::Packed;
  options.run.ranks = options.run.threads.emplace(2);
  RecordingObserver observer;
  train(options, observer, {});
  const json begin = lines_in(RunPaths(options.run.directory).events).front();
  const json& packing = begin["packing"];
  EXPECT_EQ(packing["capacity"], 24);
  EXPECT_GE(packing["packs"], packing["bound"]);
  EXPECT_GT(packing["bound"], 0);
  std::uint64_t packs = 0;
  std::uint64_t sequences = 0;
  for (std::size_t depth = 0; depth < packing["packs_of_depth"].size(); ++depth) {
    packs += packing["packs_of_depth"][depth].get<std::uint64_t>();
    sequences += depth * packing["packs_of_depth"][depth].get<std::uint64_t>();
  }
  EXPECT_EQ(packing["packs"], packs);
  EXPECT_EQ(begin["lengths"]["sequences"], sequences);
  const json& work = begin["balance"]["work_of_replica"];
  ASSERT_EQ(work.size(), 2U);
  EXPECT_NEAR(work[0].get<double>() + work[1].get<double>(), 2, 1e-9);
  EXPECT_GE(begin["balance"]["busiest"], 1);
}

TEST_F(TrainingTest, RunsKeepAStepAsPredictedAndMeasured) {
  RunOptions options = this->options("run", 10);
  options.run.process.quiet = false;
  options.run.ranks = options.run.threads.emplace(2);
  RecordingObserver observer;
  train(options, observer, {});
  const json step = json::parse(io::read_file(RunPaths(options.run.directory).step));
  EXPECT_EQ(step["step"], 8);
  EXPECT_EQ(step["ranks"], 2);
  EXPECT_EQ(step["prediction"], "machine");
  EXPECT_EQ(step["breakdown"].size(), 2U);
  ASSERT_EQ(step["predicted"]["spans"].size(), step["measured"]["spans"].size());
  for (std::size_t i = 0; i < step["measured"]["spans"].size(); ++i) {
    const json& predicted = step["predicted"]["spans"][i];
    const json& measured = step["measured"]["spans"][i];
    EXPECT_LT(measured[0], step["tracks"].size());
    EXPECT_EQ(predicted[0], measured[0]);
    EXPECT_EQ(predicted[4], measured[4]);
    EXPECT_LE(measured[1], measured[2]);
  }
}

}  // namespace
}  // namespace plenum::train
