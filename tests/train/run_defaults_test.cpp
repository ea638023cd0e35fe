#include "plenum/train/run_defaults.h"

#include <gmock/gmock.h>

#include "plenum/describe/bert.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/train/run_directory.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using optim::Duration;
using optim::DurationUnit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(DefaultLearningRate, FallsWithWidthAndDepth) {
  const auto rate = [](const char* preset) { return default_learning_rate(describe::preset(preset)); };
  EXPECT_DOUBLE_EQ(rate("bert-tiny"), 1.6e-3);
  EXPECT_DOUBLE_EQ(rate("bert-mini"), 1.1e-3);
  EXPECT_DOUBLE_EQ(rate("bert-small"), 8.0e-4);
  EXPECT_DOUBLE_EQ(rate("bert-base"), 2.2e-4);
  EXPECT_DOUBLE_EQ(rate("bert-large"), 4.7e-5);
}

TEST(DefaultLearningRate, OfMuonAndSoapIsHigher) {
  const auto rate = [](const char* preset) {
    return default_learning_rate(describe::preset(preset), optim::OptimizerKind::Muon);
  };
  EXPECT_DOUBLE_EQ(rate("bert-tiny"), 4.4e-3);
  EXPECT_DOUBLE_EQ(rate("bert-mini"), 3.1e-3);
  EXPECT_DOUBLE_EQ(rate("bert-base"), 6.0e-4);
  EXPECT_DOUBLE_EQ(default_learning_rate(describe::preset("bert-mini"), optim::OptimizerKind::Soap), 3.1e-3);
}

TEST(DefaultBatch, GrowsWithTheLengthOfTheRun) {
  constexpr std::uint64_t kTokens = 1'000'000'000;
  constexpr std::uint64_t kSequences = 10'000'000;
  const auto batch = [](double amount, DurationUnit unit) {
    return default_batch_tokens({amount, unit}, kTokens, kSequences);
  };
  EXPECT_EQ(batch(1000, DurationUnit::Steps), 8192U);
  EXPECT_EQ(batch(9999, DurationUnit::Steps), 8192U);
  EXPECT_EQ(batch(10000, DurationUnit::Steps), 32768U);
  EXPECT_EQ(batch(1e6, DurationUnit::Steps), 131072U);
  EXPECT_EQ(batch(50e6, DurationUnit::Tokens), 8192U);
  EXPECT_EQ(batch(1, DurationUnit::Epochs), 32768U);
  EXPECT_EQ(batch(500'000, DurationUnit::Sequences), 8192U);
  EXPECT_EQ(batch(5, DurationUnit::Epochs), 131072U);
}

TEST(DefaultBatch, LeavesAnEpochSomeSteps) {
  EXPECT_EQ(default_batch_tokens({1000, DurationUnit::Steps}, 20'000, 100), 2048U);
  EXPECT_EQ(default_batch_tokens({1000, DurationUnit::Steps}, 10, 1), 256U);
}

class SettledDefaults : public TrainingTest {
 protected:
  RunOptions settle(const RunOptions& given) {
    return settle_defaults(
        given, *open_training_data(given), given.run.ranks,
        [this](std::string_view line) { choices_.emplace_back(line); },
        [this](std::string_view line) { notes_.emplace_back(line); });
  }

  std::vector<std::string> choices_;
  std::vector<std::string> notes_;
};

TEST_F(SettledDefaults, AreToldWithTheOptionThatChangesThem) {
  RunOptions given = options("run");
  given.optimizer.learning_rate.peak.reset();
  given.data.global_batch.clear();
  const RunOptions settled = settle(given);
  EXPECT_DOUBLE_EQ(settled.optimizer.learning_rate.peak.value(), 4.5e-3);
  EXPECT_EQ(settled.data.global_batch, "256tok");
  EXPECT_THAT(choices_, ElementsAre(HasSubstr("--learning-rate"), HasSubstr("--global-batch")));
}

TEST_F(SettledDefaults, LeaveAloneWhatIsGiven) {
  const RunOptions settled = settle(options("run"));
  EXPECT_EQ(settled.optimizer.learning_rate.peak, 1e-2);
  EXPECT_EQ(settled.data.global_batch, "12");
  EXPECT_EQ(settled.run.device, tensor::Device::Cpu);
  EXPECT_THAT(choices_, IsEmpty());
}

TEST_F(SettledDefaults, TakeTheGpuThatCanBeUsedForOneRank) {
  RunOptions given = options("run");
  given.run.device.reset();
  given.model.width = 128;  // whose heads are as wide as a GPU's kernels ask for
  const bool has_gpu = !tensor::cuda_obstacle();
  EXPECT_EQ(settle(given).run.device, has_gpu ? tensor::Device::Cuda : tensor::Device::Cpu);
  EXPECT_THAT(notes_, IsEmpty());
  given.run.ranks = 2;
  EXPECT_EQ(settle(given).run.device, tensor::Device::Cpu);
}

TEST_F(SettledDefaults, LeaveShapesToTheCpuThatAGpuDoesNotTake) {
  RunOptions given = options("run");
  given.run.device.reset();
  EXPECT_EQ(settle(given).run.device, tensor::Device::Cpu);
  if (tensor::cuda_obstacle()) return;
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("heads of width 64 or 128")));
}

TEST_F(SettledDefaults, AreKeptByTheRun) {
  RunOptions given = options("run", 2);
  given.optimizer.learning_rate.peak.reset();
  given.data.global_batch.clear();
  run(given);
  const RunOptions kept = read_run_options(given.run.directory);
  EXPECT_DOUBLE_EQ(kept.optimizer.learning_rate.peak.value(), 4.5e-3);
  EXPECT_EQ(kept.data.global_batch, "256tok");
  EXPECT_EQ(kept.run.device, tensor::Device::Cpu);
}

}  // namespace
}  // namespace plenum::train
