#include <algorithm>

#include <nlohmann/json.hpp>

#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

class KfacTraining : public TrainingTest {
 protected:
  RunOptions kfac(std::string_view name, std::int64_t ranks, std::int64_t every = 3) const {
    RunOptions given = options(name, 9);
    given.run.ranks = ranks;
    given.run.threads = ranks;
    given.optimizer.optimizer.kind = optim::OptimizerKind::Kfac;
    given.optimizer.optimizer.kfac.every = every;
    return given;
  }
  std::vector<double> losses() const {
    std::vector<double> all;
    for (const StepReport& step : observer_.steps) all.push_back(step.outcome.loss());
    return all;
  }
};

TEST_F(KfacTraining, StoppedAtAnyStepOfACycleEndsWithTheBytesOfOneThatWasNot) {
  for (const bool is_averaged : {false, true}) {
    RunOptions whole = kfac(is_averaged ? "whole averaged" : "whole", 1);
    if (is_averaged) whole.optimizer.optimizer.kfac.average = 0.9;
    run(whole);
    for (const std::uint64_t step : {3, 4, 5}) {
      RunOptions stopped = whole;
      stopped.run.directory = whole.run.directory + " stopped " + std::to_string(step);
      run_and_stop(stopped, step);
      run(stopped);
      expect_same_checkpoint(stopped, whole);
    }
  }
}

TEST_F(KfacTraining, OfTwoRanksStoppedEndsWithTheBytesOfOneThatWasNot) {
  const RunOptions whole = kfac("whole", 2);
  run(whole);
  RunOptions stopped = whole;
  stopped.run.directory = directory_ / "stopped";
  run_and_stop(stopped, 5);
  run(stopped);
  expect_same_checkpoint(stopped, whole);
}

TEST_F(KfacTraining, GivesTheSameLossesOnSeveralRanksAndResumesOnOthers) {
  run(kfac("alone", 1));
  const std::vector<double> expected = losses();
  const std::vector<std::pair<std::int64_t, std::int64_t>> ways = {{2, 2}, {4, 4}, {1, 2}, {4, 1}};
  for (const auto& [before, after] : ways) {
    SCOPED_TRACE(testing::Message() << before << " ranks, then " << after);
    const std::string name = "way " + std::to_string(before) + std::to_string(after);
    run_and_stop(kfac(name, before), 5);
    std::vector<double> all = losses();
    run(kfac(name, after));
    const std::vector<double> rest = losses();
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t step = 0; step < all.size(); ++step)
      EXPECT_NEAR(all[step], expected[step], 1e-4 * expected[step]) << "step " << step;
  }
}

TEST_F(KfacTraining, InPipelinesGivesTheLossesOfOneRankAndResumesThere) {
  run(kfac("alone", 1));
  const std::vector<double> expected = losses();
  for (const char* const schedule : {"1f1b", "chimera", "zb-h1"}) {
    SCOPED_TRACE(schedule);
    RunOptions pipeline = kfac(schedule, 4);
    pipeline.run.pp = 2;
    pipeline.run.schedule = schedule;
    run_and_stop(pipeline, 5);
    std::vector<double> all = losses();
    run(kfac(schedule, 1));
    const std::vector<double> rest = losses();
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t step = 0; step < all.size(); ++step)
      EXPECT_NEAR(all[step], expected[step], 1e-4 * expected[step]) << "step " << step;
  }
}

TEST_F(KfacTraining, TrainsWithMuonBeneathIt) {
  RunOptions given = kfac("muon", 1);
  given.optimizer.optimizer.kfac_base = optim::OptimizerKind::Muon;
  run(given);
  EXPECT_LT(losses().back(), losses().front());
}

TEST_F(KfacTraining, LaysAStepOfACycleOverItsPrediction) {
  RunOptions given = kfac("run", 2);
  given.run.process.overlay = directory_ / "overlay.json";
  given.run.process.trace_step = 7;
  run(given);
  const nlohmann::json overlay = nlohmann::json::parse(io::read_file(given.run.process.overlay));
  double measured_seconds = 0;
  for (const nlohmann::json& action : overlay.at("actions"))
    measured_seconds = std::max(measured_seconds, action.at("measured")[1].get<double>());
  EXPECT_GT(overlay.at("predicted_step_seconds"), 0);
  EXPECT_NEAR(overlay.at("measured_step_seconds").get<double>(), measured_seconds, 1e-6);
}

TEST_F(KfacTraining, RefusesDividedMapsAndGradients) {
  RunOptions sliced = kfac("sliced", 2);
  sliced.run.tp = 2;
  test::expect_user_error([&] { run(sliced); }, "leave out --tp");
  for (const schedule::Sharding shard :
       {schedule::Sharding::Optimizer, schedule::Sharding::Gradients, schedule::Sharding::Parameters}) {
    RunOptions sharded = kfac("sharded", 2);
    sharded.run.shard = shard;
    test::expect_user_error([&] { run(sharded); }, "leave out --shard");
  }
}

}  // namespace
}  // namespace plenum::train
