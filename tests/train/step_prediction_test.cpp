#include "plenum/train/step_prediction.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>

#include "plenum/base/machine.h"
#include "plenum/calibrate/machine_file.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/step_check.h"
#include "plenum/train/step_works.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using schedule::ActionType;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

plan::Cluster known_cluster(std::size_t num_ranks) {
  plan::Cluster cluster{.name = "known", .devices_per_node = num_ranks};
  cluster.device.peak_flops = 1e9;
  cluster.device.peak_bytes_per_second = 1e9;
  cluster.device.launch_seconds = 1e-6;
  cluster.within_node = cluster.between_nodes = {.latency_seconds = 1e-5, .bytes_per_second = 1e8};
  return cluster;
}

/// From here on, base::peak_memory_bytes() counts anew. Returns what the process has now.
std::optional<std::uint64_t> forget_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  if (!file) return std::nullopt;
  return base::peak_memory_bytes();
}

class StepPredictionTest : public TrainingTest {
 protected:
  void plan_for(const RunOptions& given) {
    given_ = given;
    data_.emplace(given_.data.directory);
    plan_.emplace(given_, *data_, starting_model(given_.model, *data_));
  }
  RunOptions on_two_ranks() const {
    RunOptions given = options("run");
    given.run.ranks = 2;
    return given;
  }

  /// A step that went as predicted, but for actions of one type, which took so many times as long.
  MeasuredStep measured(StepPrediction& prediction, std::uint64_t step, ActionType slow, double times) const {
    MeasuredStep result{.times = prediction.simulate(step).replay.times};
    for (std::size_t rank = 0; rank < result.times.size(); ++rank) {
      for (std::size_t lane = 0; lane < schedule::kNumLanes; ++lane) {
        const auto actions = plan_->schedule().ranks[rank].lanes[lane].actions();
        for (std::size_t i = 0; i < actions.size(); ++i) {
          schedule::ActionTime& time = result.times[rank][lane][i];
          if (actions[i].type == slow) time.end = time.start + times * (time.end - time.start);
        }
      }
    }
    return result;
  }

  RunOptions given_;
  std::optional<PreparedData> data_;
  std::optional<RunPlan> plan_;
};

TEST_F(StepPredictionTest, IsLongerForStepsOfMoreOperations) {
  plan_for(options("run"));
  StepPrediction prediction(*plan_, known_cluster(1));
  double sum = 0;
  for (std::uint64_t step = 0; step + 1 < plan_->num_steps(); ++step) {
    sum += prediction.seconds(step);
    const double flops = plan_->batches().flops_of(step);
    const double next = plan_->batches().flops_of(step + 1);
    if (flops > 1.05 * next) EXPECT_GT(prediction.seconds(step), prediction.seconds(step + 1)) << step;
    if (next > 1.05 * flops) EXPECT_LT(prediction.seconds(step), prediction.seconds(step + 1)) << step;
  }
  sum += prediction.seconds(plan_->num_steps() - 1);
  ASSERT_EQ(plan_->num_steps(), 8U);
  EXPECT_NEAR(prediction.mean_seconds(), sum / 8, 1e-12);
}

TEST_F(StepPredictionTest, OfTwoRanksHasTheirSumsAndHalfTheWork) {
  plan_for(options("run"));
  const double of_one = StepPrediction(*plan_, known_cluster(1)).seconds(0);
  plan_for(on_two_ranks());
  const double of_two = StepPrediction(*plan_, known_cluster(2)).seconds(0);
  plan::Cluster slow = known_cluster(2);
  slow.within_node.bytes_per_second = 1e6;
  EXPECT_LT(of_two, of_one);
  EXPECT_GT(StepPrediction(*plan_, slow).seconds(0), of_two + 1e-3);
}

TEST_F(StepPredictionTest, ByWhatWasMeasuredOfTheRunsOperationsIsOfThemAll) {
  plan_for(on_two_ranks());
  const plan::Cluster measured = measure_cluster(*plan_, {}, 0.02);
  EXPECT_GT(measured.device.peak_flops, 0);
  EXPECT_GT(measured.within_node.bytes_per_second, 0);
  for (const plan::OpKind kind : {plan::OpKind::ProductForward, plan::OpKind::AttentionBackward,
                                  plan::OpKind::VocabularyLossForward, plan::OpKind::AdamW}) {
    EXPECT_FALSE(measured.device.points(kind).empty()) << plan::op_kind_name(kind);
  }
  EXPECT_GT(StepPrediction(*plan_, measured).seconds(0), 0);
}

TEST_F(StepPredictionTest, TakesNoMoreMemoryThanTheRunWill) {
  RunOptions given = options("run");
  given.run.ranks = 2;
  given.run.threads = 2;
  given.model.layers = 2;
  given.model.width = 256;
  given.model.heads = 4;
  given.model.mlp_width = 1024;
  given.data.global_batch = "200";
  given.data.micro_batch_tokens = 1000;
  const PreparedData dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  const std::size_t planned = plan.memory().planned_bytes;
  ASSERT_LT(planned, std::size_t{200} << 20) << "or a test of one limit would not show it";
  const std::optional<std::uint64_t> before = forget_peak_memory();
  if (!before) GTEST_SKIP() << "this system does not let a process forget its peak";
  measure_cluster(plan, {}, 0.2);
  constexpr std::uint64_t kForThreads = std::uint64_t{8} << 20;
  EXPECT_LE(base::peak_memory_bytes(), *before + planned + kForThreads);
}

TEST_F(StepPredictionTest, ThatComesTrueIsNoSurprise) {
  plan_for(on_two_ranks());
  StepPrediction prediction(*plan_, known_cluster(2));
  StepCheck check(plan_->schedule(), prediction);
  EXPECT_EQ(check.surprise(), std::nullopt);
  for (const std::uint64_t step : {1U, 2U})
    check.add(step, measured(prediction, step, ActionType::Forward, 1), 1.19 * prediction.seconds(step));
  EXPECT_EQ(check.surprise(), std::nullopt);
}

TEST_F(StepPredictionTest, ThatIsFarOffNamesTheActionThatDiffersMost) {
  plan_for(on_two_ranks());
  StepPrediction prediction(*plan_, known_cluster(2));
  for (const auto& [slow, name] :
       {std::pair(ActionType::Forward, "forward"), std::pair(ActionType::Update, "update")}) {
    StepCheck check(plan_->schedule(), prediction);
    check.add(1, measured(prediction, 1, slow, 5), 1.5 * prediction.seconds(1));
    ASSERT_TRUE(check.surprise());
    EXPECT_THAT(*check.surprise(), HasSubstr("(+50 %); what differs most is " + std::string(name) + ":"));
  }
  StepCheck check(plan_->schedule(), prediction);
  check.add(1, measured(prediction, 1, ActionType::Backward, 0.1), 0.5 * prediction.seconds(1));
  EXPECT_THAT(check.surprise().value(), HasSubstr("(-50 %); what differs most is backward:"));
}

TEST_F(StepPredictionTest, ByAMachinesFileIsHeldAgainstTheRun) {
  calibrate::Machine slow{.name = "slow", .date = "2026-11-19", .memory_bytes = 1e10};
  calibrate::Setting setting;
  setting.model.peak_flops = 2e7;
  setting.model.peak_bytes_per_second = 1e8;
  setting.model.launch_seconds = 1e-3;
  slow.settings.push_back(setting);
  calibrate::write_machine(slow, directory_ / "slow.toml");
  RunOptions given = options("run", 12);
  given.run.process.machine = directory_ / "slow.toml";
  run(given);
  EXPECT_EQ(observer_.summary.predicted_step_seconds, 0);  // nobody looks
  given.run.directory = directory_ / "seen";
  given.run.process.quiet = false;
  run(given);
  EXPECT_GT(observer_.summary.predicted_step_seconds, 0.1);
  EXPECT_EQ(observer_.summary.product_rate, 2e7);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("that were predicted (-")));
}

TEST_F(StepPredictionTest, ChangesNothingThatIsComputed) {
  RunOptions given = options("quiet", 10);
  run(given);
  RunOptions seen = options("seen", 10);
  seen.run.process.quiet = false;
  run(seen);
  EXPECT_GT(observer_.summary.predicted_step_seconds, 0);
  expect_same_checkpoint(seen, given);
}

TEST_F(StepPredictionTest, ByAFileThatIsNoneIsRefusedBeforeAnythingIsMade) {
  RunOptions given = options("run", 12);
  given.run.process.machine = directory_.write("broken.toml", "[machine]\nname = 3\n");
  given.run.process.quiet = false;
  EXPECT_THAT(test::user_error_of([&] { run(given); }), HasSubstr("broken.toml:2"));
  EXPECT_FALSE(std::filesystem::exists(given.run.directory + "/config.toml"));
}

}  // namespace
}  // namespace plenum::train
