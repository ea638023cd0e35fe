#include "plenum/train/processes.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plenum/comm/local/local_world.h"
#include "plenum/io/file.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using comm::Rank;
using comm::local::LocalWorld;
using testing::ElementsAre;
using testing::HasSubstr;

/// Processes of a run are threads here, which share nothing but a world and the run's directory.
class ProcessesTest : public TrainingTest {
 protected:
  /// What came of one process.
  struct Ended {
    RecordingObserver observer;
    std::stop_source stop;
    TrainingResult result;
    std::string error;  ///< that it threw
  };

  RunOptions options_of(std::string_view run, std::size_t count) const {
    RunOptions given = options(run, 12);
    given.run.ranks = static_cast<std::int64_t>(count);
    given.run.threads = static_cast<std::int64_t>(count);
    return given;
  }

  /// Trains in `count` processes; `prepare` is told of each before it begins.
  static std::vector<Ended> train_in_processes(const RunOptions& options,
                                               const std::function<void(std::size_t, Ended&)>& prepare = {}) {
    const auto count = static_cast<std::size_t>(options.run.ranks);
    LocalWorld world(count);
    std::vector<Ended> ended(count);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < count; ++i) {
        if (prepare) prepare(i, ended[i]);
        threads.emplace_back([&, i] {
          const std::unique_ptr<comm::Communicator> ranks = world.communicator(Rank::at(i));
          try {
            const Connect connect = [&](const RunOptions&) { return Processes(*ranks); };
            ended[i].result = train(options, ended[i].observer, ended[i].stop.get_token(), connect);
          } catch (const std::exception& error) {
            ended[i].error = error.what();
            ranks->abort_all(Rank::at(i), error.what());
          }
        });
      }
    }
    return ended;
  }
};

TEST_F(ProcessesTest, TrainToTheBytesOfAsManyRanksInOneProcess) {
  for (const std::size_t count : {2U, 3U}) {
    const std::string name = std::to_string(count);
    run(options_of("threads" + name, count));
    const std::vector<Ended> ended = train_in_processes(options_of("processes" + name, count));
    for (const Ended& process : ended) {
      EXPECT_EQ(process.error, "");
      EXPECT_EQ(process.result.end, TrainingResult::End::Finished);
      EXPECT_EQ(process.result.best_loss, ended.front().result.best_loss);
      ASSERT_EQ(process.observer.steps.size(), observer_.steps.size());
      for (std::size_t i = 0; i < observer_.steps.size(); ++i) {
        EXPECT_EQ(process.observer.steps[i].outcome.loss(), observer_.steps[i].outcome.loss());
        EXPECT_EQ(process.observer.steps[i].padded_tokens, observer_.steps[i].padded_tokens);
      }
      ASSERT_EQ(process.observer.evaluations.size(), observer_.evaluations.size());
      for (std::size_t i = 0; i < observer_.evaluations.size(); ++i)
        EXPECT_EQ(process.observer.evaluations[i].second.loss(), observer_.evaluations[i].second.loss());
    }
    expect_same_checkpoint(options_of("processes" + name, count), options_of("threads" + name, count));
  }
}

TEST_F(ProcessesTest, DrawTheActionsOfAllOfThem) {
  RunOptions given = options_of("run", 3);
  given.run.process.trace = directory_ / "step.json";
  given.run.process.trace_step = 2;
  for (const Ended& process : train_in_processes(given)) EXPECT_EQ(process.error, "");
  const nlohmann::json trace = nlohmann::json::parse(io::read_file(given.run.process.trace));
  std::map<int, std::pair<double, double>> backward;  // of each rank, begin and end
  std::map<int, double> update;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string name = event.at("name");
    const int rank = event.at("pid");
    const double begin = event.at("ts");
    const double end = begin + event.at("dur").get<double>();
    if (name.starts_with("backward")) backward[rank] = {begin, end};
    if (name.starts_with("update")) update[rank] = begin;
  }
  ASSERT_EQ(backward.size(), 3U);
  ASSERT_EQ(update.size(), 3U);
  for (const auto& [rank, begin] : update) {
    // No rank updates before all have computed, by one clock.
    for (const auto& [other, times] : backward) EXPECT_GE(begin, times.second);
    EXPECT_GT(backward[rank].second, backward[rank].first);
  }
}

TEST_F(ProcessesTest, StopTogetherWhereOneIsAskedToAndGoOnToTheBytesOfAnUndisturbedRun) {
  constexpr std::size_t kCount = 3;
  run(options_of("undisturbed", kCount));
  const RunOptions disturbed = options_of("disturbed", kCount);
  for (const std::size_t asked : {1U, 2U}) {
    std::vector<Ended> ended = train_in_processes(disturbed, [&](std::size_t index, Ended& process) {
      if (index != asked) return;
      process.observer.after_step = [&process, asked](const StepReport& report) {
        if (report.step == 3 * asked) process.stop.request_stop();
      };
    });
    for (const Ended& process : ended) {
      EXPECT_EQ(process.error, "");
      EXPECT_EQ(process.result.end, TrainingResult::End::Stopped);
      EXPECT_EQ(process.result.step, ended.front().result.step);
      EXPECT_GE(process.result.step, 3 * asked);
      EXPECT_LE(process.result.step, 3 * asked + 1);
    }
  }
  for (const Ended& process : train_in_processes(disturbed)) EXPECT_EQ(process.error, "");
  expect_same_checkpoint(disturbed, options_of("undisturbed", kCount));
}

TEST_F(ProcessesTest, GoOnWithAnotherNumberOfThem) {
  RunOptions given = options_of("run", 2);
  for (const std::size_t count : {2U, 3U, 1U}) {
    given.run.ranks = static_cast<std::int64_t>(count);
    given.run.threads = given.run.ranks;
    given.run.steps.amount += 4;
    for (const Ended& process : train_in_processes(given)) {
      EXPECT_EQ(process.error, "");
      EXPECT_EQ(process.observer.steps.size(), given.run.steps.amount == 16 ? 16U : 4U);
    }
  }
}

TEST_F(ProcessesTest, OnlyTheFirstWritesMetricsAndAllKnowOfCheckpoints) {
  const std::vector<Ended> ended = train_in_processes(options_of("run", 2));
  for (const Ended& process : ended) EXPECT_THAT(process.observer.checkpoints, ElementsAre(5, 10, 12));
  const std::string metrics = io::read_file(directory_ / "run/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(metrics, '\n'), 12);
}

TEST_F(ProcessesTest, AllEndWhereTheFirstRefusesTheRun) {
  RunOptions given = options_of("run", 2);
  run(given);
  given.data.mask_rate = 0.3;
  const std::vector<Ended> ended = train_in_processes(given);
  for (const Ended& process : ended) EXPECT_THAT(process.error, HasSubstr("mask-rate in [data]"));
}

}  // namespace
}  // namespace plenum::train
