#include <algorithm>

#include <gmock/gmock.h>

#include "plenum/io/safetensors.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

class MuonTraining : public TrainingTest {
 protected:
  RunOptions muon(const std::string& name, double steps) const {
    RunOptions given = options(name, steps);
    given.optimizer.optimizer.kind = optim::OptimizerKind::Muon;
    given.optimizer.learning_rate.peak = 3e-3;
    return given;
  }

  std::vector<double> losses_of(const RunOptions& given) {
    run(given);
    std::vector<double> losses;
    for (const StepReport& report : observer_.steps) losses.push_back(report.outcome.loss());
    return losses;
  }
};

TEST_F(MuonTraining, OnTwoRanksHasTheLossesOfOne) {
  const std::vector<double> one = losses_of(muon("one", 20));
  RunOptions given = muon("two", 20);
  given.run.ranks = 2;
  given.run.threads = 2;
  const std::vector<double> two = losses_of(given);
  ASSERT_EQ(two.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-4 * one[i]) << "step " << i + 1;
  EXPECT_LT(one.back(), one.front() - 0.3);
}

TEST_F(MuonTraining, StoppedAndResumedEndsWithTheBytesOfOneThatWasNot) {
  const RunOptions whole = muon("whole", 20);
  run(whole);
  const RunOptions parts = muon("parts", 20);
  EXPECT_EQ(run_and_stop(parts, 7).end, TrainingResult::End::Stopped);
  EXPECT_EQ(run(parts).end, TrainingResult::End::Finished);
  expect_same_checkpoint(parts, whole);
}

TEST_F(MuonTraining, HasTheSameBytesWithAnyNumberOfThreads) {
  const RunOptions one = muon("one", 5);
  run(one);
  RunOptions three = muon("three", 5);
  three.run.threads = 3;
  run(three);
  expect_same_checkpoint(three, one);
}

TEST_F(MuonTraining, KeepsNoSecondMomentOfTheMatricesOfLayers) {
  const RunOptions given = muon("run", 5);
  const TrainingResult result = run(given);
  const io::SafetensorsFile file(result.checkpoint + "/optimizer.safetensors");
  const std::string map = "bert.encoder.layer.0.intermediate.dense.";
  EXPECT_NE(file.find("exp_avg." + map + "weight"), nullptr);
  EXPECT_EQ(file.find("exp_avg_sq." + map + "weight"), nullptr);
  EXPECT_NE(file.find("exp_avg_sq." + map + "bias"), nullptr);
}

TEST_F(MuonTraining, StepsThatAreNotFiniteChangeNothing) {
  RunOptions given = muon("run", 4);
  given.optimizer.learning_rate.peak = 1e30;  // the second step finds weights that are beyond all numbers
  given.optimizer.learning_rate.warmup = {0, optim::DurationUnit::Steps};
  run(given);
  ASSERT_EQ(observer_.steps.size(), 4U);
  EXPECT_FALSE(observer_.steps[0].outcome.is_skipped);
  EXPECT_TRUE(observer_.steps[1].outcome.is_skipped);
  EXPECT_EQ(observer_.steps[3].outcome.num_updates, 1U);
}

TEST_F(MuonTraining, IsRefusedInOneLineWhereMatricesAreCut) {
  RunOptions given = muon("run", 5);
  given.run.ranks = 2;
  given.run.threads = 2;
  given.run.shard = schedule::Sharding::Optimizer;
  test::expect_user_error([&] { run(given); }, "which --shard cuts");
  given.run.shard = schedule::Sharding::None;
  given.run.tp = 2;
  test::expect_user_error([&] { run(given); }, "which --tp divides");
}

}  // namespace
}  // namespace plenum::train
