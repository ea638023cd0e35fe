#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "plenum/io/safetensors.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using optim::OptimizerKind;

/// Training with an optimizer that updates the weights of layers as matrices.
class LayerUpdate : public TrainingTest, public testing::WithParamInterface<OptimizerKind> {
 protected:
  RunOptions given(const std::string& name, double steps) const { return given(name, steps, GetParam()); }
  RunOptions given(const std::string& name, double steps, OptimizerKind kind) const {
    RunOptions given = options(name, steps);
    given.optimizer.optimizer.kind = kind;
    given.optimizer.optimizer.soap = {.every = 3, .limit = 16};
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

TEST_P(LayerUpdate, OnTwoRanksHasTheLossesOfOne) {
  const std::vector<double> one = losses_of(given("one", 20));
  RunOptions divided = given("two", 20);
  divided.run.ranks = 2;
  divided.run.threads = 2;
  const std::vector<double> two = losses_of(divided);
  ASSERT_EQ(two.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-4 * one[i]) << "step " << i + 1;
  EXPECT_LT(one.back(), one.front() - 0.3);
}

TEST_P(LayerUpdate, StoppedAndResumedEndsWithTheBytesOfOneThatWasNot) {
  const RunOptions whole = given("whole", 20);
  run(whole);
  const RunOptions parts = given("parts", 20);
  EXPECT_EQ(run_and_stop(parts, 7).end, TrainingResult::End::Stopped);
  EXPECT_EQ(run(parts).end, TrainingResult::End::Finished);
  expect_same_checkpoint(parts, whole);
}

TEST_P(LayerUpdate, ResumesOnTwoRanks) {
  const RunOptions whole = given("whole", 12);
  const std::vector<double> expected = losses_of(whole);
  RunOptions parts = given("parts", 12);
  const TrainingResult stopped = run_and_stop(parts, 4);
  parts.run.ranks = 2;
  parts.run.threads = 2;
  const std::vector<double> rest = losses_of(parts);
  ASSERT_EQ(rest.size() + stopped.step, expected.size());
  for (std::size_t i = 0; i < rest.size(); ++i)
    EXPECT_NEAR(rest[i], expected[stopped.step + i], 1e-4 * rest[i]) << "step " << stopped.step + i + 1;
}

TEST_P(LayerUpdate, HasTheSameBytesWithAnyNumberOfThreads) {
  const RunOptions one = given("one", 5);
  run(one);
  RunOptions three = given("three", 5);
  three.run.threads = 3;
  run(three);
  expect_same_checkpoint(three, one);
}

TEST_P(LayerUpdate, StepsThatAreNotFiniteChangeNothing) {
  RunOptions endless = given("run", 4);
  endless.optimizer.learning_rate.peak = 1e30;  // the second step finds weights that are beyond all numbers
  endless.optimizer.learning_rate.warmup = {0, optim::DurationUnit::Steps};
  run(endless);
  ASSERT_EQ(observer_.steps.size(), 4U);
  EXPECT_FALSE(observer_.steps[0].outcome.is_skipped);
  EXPECT_TRUE(observer_.steps[1].outcome.is_skipped);
  EXPECT_EQ(observer_.steps[3].outcome.num_updates, 1U);
}

TEST_P(LayerUpdate, IsRefusedInOneLineWhereMatricesAreCut) {
  RunOptions cut = given("run", 5);
  cut.run.ranks = 2;
  cut.run.threads = 2;
  cut.run.shard = schedule::Sharding::Optimizer;
  test::expect_user_error([&] { run(cut); }, "which --shard cuts");
  cut.run.shard = schedule::Sharding::None;
  cut.run.tp = 2;
  test::expect_user_error([&] { run(cut); }, "which --tp divides");
}

TEST_P(LayerUpdate, InAPipelineHasTheLossesOfOneRank) {
  RunOptions alone = given("one", 10);
  alone.model.layers = 4;
  const std::vector<double> one = losses_of(alone);
  for (const schedule::Generator& generator : schedule::all_generators()) {
    if (!generator.is_pipeline()) continue;
    SCOPED_TRACE(generator.name);
    RunOptions divided = given(fmt::format("{}", generator.name), 10);
    divided.model.layers = 4;
    divided.run.ranks = 4;
    divided.run.threads = 4;
    divided.run.pp = 2;
    divided.run.schedule = generator.name;
    const std::vector<double> four = losses_of(divided);
    ASSERT_EQ(four.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(four[i], one[i], 1e-4 * one[i]) << "step " << i + 1;
  }
}

TEST_P(LayerUpdate, StoppedInAPipelineResumesInAnother) {
  RunOptions whole = given("whole", 12);
  whole.model.layers = 4;
  const std::vector<double> expected = losses_of(whole);
  RunOptions parts = whole;
  parts.run.directory = given("parts", 12).run.directory;
  for (const auto& [stop, schedule] : {std::pair(4, "1f1b"), {8, "chimera"}, {12, "interleaved"}}) {
    SCOPED_TRACE(schedule);
    parts.run.ranks = stop == 8 ? 4 : 2;
    parts.run.threads = parts.run.ranks;
    parts.run.pp = 2;
    parts.run.schedule = schedule;
    stop == 12 ? run(parts) : run_and_stop(parts, static_cast<std::uint64_t>(stop));
    ASSERT_FALSE(observer_.steps.empty());
    for (const StepReport& report : observer_.steps) {
      const double loss = expected[report.step - 1];
      EXPECT_NEAR(report.outcome.loss(), loss, 1e-4 * loss) << "step " << report.step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LayerUpdate, testing::Values(OptimizerKind::Muon, OptimizerKind::Soap),
                         [](const testing::TestParamInfo<OptimizerKind>& info) {
                           return info.param == OptimizerKind::Muon ? "Muon" : "Soap";
                         });

using LayerUpdateFiles = LayerUpdate;

TEST_F(LayerUpdateFiles, OfMuonHaveNoSecondMomentOfTheMatricesOfLayers) {
  const TrainingResult result = run(given("run", 5, OptimizerKind::Muon));
  const io::SafetensorsFile file(result.checkpoint + "/optimizer.safetensors");
  const std::string map = "bert.encoder.layer.0.intermediate.dense.";
  EXPECT_NE(file.find("exp_avg." + map + "weight"), nullptr);
  EXPECT_EQ(file.find("exp_avg_sq." + map + "weight"), nullptr);
  EXPECT_NE(file.find("exp_avg_sq." + map + "bias"), nullptr);
}

TEST_F(LayerUpdateFiles, OfSoapHaveFactorsAndOrthonormalBases) {
  const TrainingResult result = run(given("run", 7, OptimizerKind::Soap));
  const io::SafetensorsFile file(result.checkpoint + "/optimizer.safetensors");
  const std::string map = "bert.encoder.layer.0.intermediate.dense.weight";
  // 32 rows, which are more than the limit, and 16 columns.
  EXPECT_EQ(file.find("soap.basis_rows." + map), nullptr);
  const io::SafetensorsTensor* const basis = file.find("soap.basis_columns." + map);
  ASSERT_NE(basis, nullptr);
  std::vector<float> values(16 * 16);
  ASSERT_EQ(basis->num_elements, values.size());
  file.read(*basis, values);
  double off_diagonal = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      double dot = 0;
      for (std::size_t k = 0; k < 16; ++k) dot += double{values[i * 16 + k]} * values[j * 16 + k];
      EXPECT_NEAR(dot, i == j ? 1 : 0, 1e-5) << i << " " << j;
      if (i != j) off_diagonal += std::abs(values[i * 16 + j]);
    }
  }
  EXPECT_GT(off_diagonal, 1) << "bases are no longer the identity that they began as";
}

}  // namespace
}  // namespace plenum::train
