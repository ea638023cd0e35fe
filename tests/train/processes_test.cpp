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
#include "plenum/train/run_directory.h"
#include "plenum/train/run_warnings.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using comm::Rank;
using comm::local::LocalWorld;
using testing::ElementsAre;
using testing::HasSubstr;

/// How the ranks of a run hold the model.
struct Division {
  std::size_t ranks;
  std::int64_t tp = 1;
  schedule::Sharding shard = schedule::Sharding::None;
  std::int64_t pp = 1;
  const char* schedule = "";
};
constexpr Division kDivisions[] = {{2, 1, schedule::Sharding::Optimizer},
                                   {3, 1, schedule::Sharding::Gradients},
                                   {2, 2, schedule::Sharding::None},
                                   {2, 1, schedule::Sharding::None, 2, "1f1b"},
                                   {4, 2, schedule::Sharding::None},
                                   {4, 2, schedule::Sharding::Optimizer},
                                   {4, 1, schedule::Sharding::None, 2, "chimera"},
                                   {4, 2, schedule::Sharding::Gradients},
                                   {3, 1, schedule::Sharding::Parameters},
                                   {4, 2, schedule::Sharding::None, 2, "zb-h1"},
                                   {4, 2, schedule::Sharding::Parameters}};

/// Processes of a run are threads here, which share nothing but a world and the run's directory.
class ProcessesTest : public TrainingTest {
 protected:
  /// What came of one process.
  struct Ended {
    RecordingObserver observer;
    std::stop_source stop;
    TrainingResult result;
    std::string error;  ///< that it threw
    std::vector<std::string> said;
  };

  RunOptions options_of(std::string_view run, std::size_t count) const {
    RunOptions given = options(run, 12);
    given.run.ranks = static_cast<std::int64_t>(count);
    given.run.threads = static_cast<std::int64_t>(count);
    return given;
  }

  RunOptions options_of(std::string_view run, const Division& division) const {
    RunOptions given = options_of(run, division.ranks);
    given.run.tp = division.tp;
    given.run.shard = division.shard;
    given.run.pp = division.pp;
    given.run.schedule = division.schedule;
    given.run.bucket_bytes = 1;  // a bucket for each layer
    given.model.heads = 4;
    given.optimizer.learning_rate.peak = 1e-3;
    return given;
  }

  static void ask_to_stop_after(std::uint64_t step, Ended& process) {
    process.observer.after_step = [&process, step](const StepReport& report) {
      if (report.step == step) process.stop.request_stop();
    };
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
            const Connect connect = [&](const RunOptions&, const TrainingData&) {
              return Processes(*ranks, [&](std::string_view text) { ended[i].said.emplace_back(text); });
            };
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

TEST_F(ProcessesTest, AreWarnedOfRanksWithFewerCoresThanThreads) {
  LocalWorld world(3);
  std::vector<std::optional<std::string>> warnings(3);
  const auto warn = [&](std::size_t num_threads) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        const std::unique_ptr<comm::Communicator> ranks = world.communicator(Rank::at(i));
        warnings[i] = core_warning(Processes(*ranks), num_threads, i == 0 ? 4 : 2);
      });
    }
  };
  warn(4);
  ASSERT_TRUE(warnings[0]);
  EXPECT_THAT(
      *warnings[0],
      HasSubstr("2 of 3 ranks may use fewer cores than they have threads, such as rank 1: 2 cores and 4"));
  EXPECT_FALSE(warnings[1]);
  warn(2);
  EXPECT_FALSE(warnings[0]);
}

TEST_F(ProcessesTest, StopTogetherWhereOneIsAskedToAndGoOnToTheBytesOfAnUndisturbedRun) {
  constexpr std::size_t kCount = 3;
  run(options_of("undisturbed", kCount));
  const RunOptions disturbed = options_of("disturbed", kCount);
  for (const std::size_t asked : {1U, 2U}) {
    std::vector<Ended> ended = train_in_processes(disturbed, [&](std::size_t index, Ended& process) {
      if (index != asked) return;
      ask_to_stop_after(3 * asked, process);
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

TEST_F(ProcessesTest, DivideAModelToTheBytesOfRanksInOneProcess) {
  int number = 0;
  for (const Division& division : kDivisions) {
    SCOPED_TRACE(testing::Message() << division.ranks << " ranks, tp " << division.tp << ", pp "
                                    << division.pp << ", shard " << static_cast<int>(division.shard));
    const std::string name = std::to_string(++number);
    const RunOptions threads = options_of("threads" + name, division);
    run(threads);
    ASSERT_FALSE(observer_.evaluations.empty());
    const RunOptions whole = options_of("processes" + name, division);
    for (const Ended& process : train_in_processes(whole)) {
      EXPECT_EQ(process.error, "");
      ASSERT_EQ(process.observer.evaluations.size(), observer_.evaluations.size());
      EXPECT_EQ(process.observer.evaluations.back().second.loss(),
                observer_.evaluations.back().second.loss());
    }
    expect_same_checkpoint(whole, threads);
    const RunOptions stopped = options_of("stopped" + name, division);
    const auto stop_the_last = [&](std::size_t index, Ended& process) {
      if (index + 1 == division.ranks) ask_to_stop_after(4, process);
    };
    for (const Ended& process : train_in_processes(stopped, stop_the_last))
      EXPECT_EQ(process.result.end, TrainingResult::End::Stopped) << process.error;
    for (const Ended& process : train_in_processes(stopped)) EXPECT_EQ(process.error, "");
    expect_same_checkpoint(stopped, threads);
  }
}

TEST_F(ProcessesTest, FillBubblesToTheBytesOfRanksInOneProcessWithTheSameSchedule) {
  for (const optim::OptimizerKind kind : {optim::OptimizerKind::Kfac, optim::OptimizerKind::Soap}) {
    const std::string name = kind == optim::OptimizerKind::Kfac ? "kfac" : "soap";
    SCOPED_TRACE(name);
    RunOptions measured = options_of("measured " + name, {4, 1, schedule::Sharding::None, 2, "1f1b"});
    measured.optimizer.optimizer.kind = kind;
    // Others learn of the schedule from the first, who alone says what came of it.
    const auto stop_the_last = [&](std::size_t index, Ended& process) {
      if (index == 3) ask_to_stop_after(5, process);
    };
    const std::vector<Ended> stopped = train_in_processes(measured, stop_the_last);
    for (std::size_t i = 0; i < stopped.size(); ++i) {
      EXPECT_EQ(stopped[i].error, "");
      const auto notes = testing::Contains(HasSubstr("bubbles"));
      if (i == 0) {
        EXPECT_THAT(stopped[i].observer.notes, notes);
      } else {
        EXPECT_THAT(stopped[i].observer.notes, testing::Not(notes));
      }
    }
    for (const Ended& process : train_in_processes(measured)) EXPECT_EQ(process.error, "");
    RunOptions threads = options_of("threads " + name, {4, 1, schedule::Sharding::None, 2});
    threads.optimizer.optimizer.kind = kind;
    threads.run.schedule =
        directory_.write(name + ".txt", io::read_file(RunPaths(measured.run.directory).schedule));
    run(threads);
    expect_same_checkpoint(threads, measured);
  }
}

TEST_F(ProcessesTest, GoOnFromTheCheckpointOfAnyOtherDivision) {
  const auto longer = [&](std::string_view run, const Division& division) {
    RunOptions given = options_of(run, division);
    given.run.steps = {8.0 * std::size(kDivisions), optim::DurationUnit::Steps};
    return given;
  };
  run(longer("alone", {1}));
  const std::vector<StepReport> expected = observer_.steps;
  const auto expect_equal = [&](const RecordingObserver& observer) {
    for (const StepReport& report : observer.steps) {
      const double loss = expected[report.step - 1].outcome.loss();
      EXPECT_NEAR(report.outcome.loss(), loss, 1e-4 * loss) << "step " << report.step;
    }
  };
  // Each resumes where the one before stopped; processes and threads take turns.
  std::uint64_t stop = 1;
  for (const Division& division : kDivisions) {
    SCOPED_TRACE(stop);
    const auto stop_first = [&](std::size_t index, Ended& process) {
      if (index == 0) ask_to_stop_after(stop, process);
    };
    const std::vector<Ended> ended = train_in_processes(longer("run", division), stop_first);
    for (const Ended& process : ended) {
      EXPECT_EQ(process.error, "");
      expect_equal(process.observer);
    }
    stop = ended.front().result.step + 1;
    const TrainingResult result = run_and_stop(longer("run", kDivisions[stop % std::size(kDivisions)]), stop);
    ASSERT_EQ(result.end, TrainingResult::End::Stopped);
    expect_equal(observer_);
    stop = result.step + 1;
  }
  EXPECT_GT(stop, 2 * std::size(kDivisions));
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

TEST_F(ProcessesTest, LeaveToTheFirstWhatAllWouldSay) {
  RunOptions given = options_of("run", 2);
  given.data.directory =
      prepare("whole", data::Objective::MaskedLanguageModel, data::letter_vocabulary(), 50, 0);
  const auto has_notes = [](const Ended& process, const char* part) {
    return std::ranges::any_of(process.observer.notes,
                               [&](const std::string& note) { return note.find(part) != std::string::npos; });
  };
  for (const char* part : {"no data is held out", "resumes from"}) {
    const std::vector<Ended> ended = train_in_processes(given);
    EXPECT_TRUE(has_notes(ended[0], part)) << part;
    EXPECT_FALSE(has_notes(ended[1], part)) << part;
    given.run.steps.amount += 2;
  }
}

TEST_F(ProcessesTest, NeverSayThatTheyDoNothing) {
  for (const Ended& process : train_in_processes(options_of("run", 2)))
    EXPECT_THAT(process.said, testing::Each(testing::Ne("")));
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
