#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/bfloat16_band.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/on_gpu.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using tensor::Device;

constexpr std::size_t kNumSteps = 200;
constexpr std::size_t kWindow = 20;

/// Losses of every step, each the mean of the last twenty: what a curve looks like.
std::vector<double> smoothed_losses(const std::vector<StepReport>& steps) {
  std::vector<double> smoothed;
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    sum += steps[i].outcome.loss();
    if (i >= kWindow) sum -= steps[i - kWindow].outcome.loss();
    if (i + 1 >= kWindow) smoothed.push_back(sum / kWindow);
  }
  return smoothed;
}

/// How far two curves are apart.
struct CurveDistance {
  double largest = 0;
  double mean = 0;
};

CurveDistance distance_of(std::span<const double> a, std::span<const double> b) {
  CurveDistance distance;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance.largest = std::max(distance.largest, std::abs(a[i] - b[i]));
    distance.mean += std::abs(a[i] - b[i]) / static_cast<double>(a.size());
  }
  return distance;
}

// The band in which a curve in bf16 follows that in fp32, in nats of smoothed loss. Data, masks and dropout
// are the same, so that what differs is rounding alone: one or two percent of each gradient, in another
// direction in each step, of which the mean over many steps leaves little. A learning rate that is 2 % lower
// leaves the band.
constexpr CurveDistance kBand{.largest = 0.005, .mean = 0.002};

/// Trains the smallest model that a GPU takes.
class CurveTest : public TrainingTest {
 protected:
  RunOptions options_on(Device device, std::string_view run, std::size_t steps) const {
    RunOptions given = options(run, static_cast<double>(steps));
    given.run.device = device;
    given.model.width = 128;
    given.model.heads = 2;
    given.model.mlp_width = 256;
    given.data.global_batch = "24";
    given.data.micro_batch_tokens = 300;
    given.optimizer.learning_rate.peak = 1e-3;
    return given;
  }

  std::vector<double> curve_of(RunOptions given) {
    given.run.steps = {kNumSteps, optim::DurationUnit::Steps};
    given.checkpoint.every = given.run.steps;
    given.evaluation.every = given.run.steps;
    evaluation_ = run(given).evaluation;
    return smoothed_losses(observer_.steps);
  }

  static void record(const CurveDistance& distance, const std::string& of = "") {
    RecordProperty(of + "largest_distance", std::to_string(distance.largest));
    RecordProperty(of + "mean_distance", std::to_string(distance.mean));
  }
  /// Every twentieth point of a curve: the means of steps 1 to 20, 21 to 40 and so on.
  static void record(std::span<const double> curve, const std::string& of) {
    for (std::size_t i = 0; i < curve.size(); i += kWindow) {
      RecordProperty(of + "_loss_" + std::to_string(i + kWindow), std::to_string(curve[i]));
    }
  }

  void expect_that_drawing_a_step_changes_nothing(Device device) {
    const RunOptions plain = options_on(device, "plain", 8);
    run(plain);
    RunOptions drawn = options_on(device, "drawn", 8);
    drawn.run.process.trace = directory_ / "step.json";
    // A GPU runs what it recorded before and after this step, but not in it.
    drawn.run.process.trace_step = 5;
    run(drawn);
    const nlohmann::json trace = nlohmann::json::parse(io::read_file(drawn.run.process.trace));
    std::set<std::string> actions;
    for (const nlohmann::json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      actions.insert(event.at("cat"));
      EXPECT_GT(event.at("dur"), 0) << event;
    }
    EXPECT_THAT(actions, testing::IsSupersetOf({"forward", "backward", "update"}));
    expect_same_checkpoint(drawn, plain);
  }

  std::optional<Evaluation> evaluation_;  ///< at the end of the last curve
};

TEST_F(CurveTest, TheBandIsNarrowerThanWhatASmallMistakeWouldMake) {
  RunOptions given = options_on(Device::Cpu, "run", kNumSteps);
  const std::vector<double> curve = curve_of(given);
  EXPECT_GT(curve.front() - curve.back(), 20 * kBand.largest);
  given.run.directory = directory_ / "slower";
  *given.optimizer.learning_rate.peak *= 0.98;
  const CurveDistance distance = distance_of(curve_of(given), curve);
  EXPECT_GT(distance.mean, kBand.mean);
  record(distance);
}

TEST_F(CurveTest, DrawingAStepChangesNothing) {
  expect_that_drawing_a_step_changes_nothing(Device::Cpu);
}

using TrainingOnGpu = test::OnGpu<CurveTest>;

TEST_F(TrainingOnGpu, DrawingAStepChangesNothing) {
  expect_that_drawing_a_step_changes_nothing(Device::Cuda);
}

TEST_F(TrainingOnGpu, FollowsTheCurveOfTheCpuFor200Steps) {
  const std::vector<double> expected = curve_of(options_on(Device::Cpu, "cpu", kNumSteps));
  const std::optional<Evaluation> expected_evaluation = evaluation_;
  const std::vector<double> curve = curve_of(options_on(Device::Cuda, "gpu", kNumSteps));
  ASSERT_EQ(curve.size(), expected.size());
  const CurveDistance distance = distance_of(curve, expected);
  EXPECT_LE(distance.largest, kBand.largest);
  EXPECT_LE(distance.mean, kBand.mean);
  ASSERT_TRUE(evaluation_ && expected_evaluation);
  EXPECT_NEAR(evaluation_->words().loss, expected_evaluation->words().loss, kBand.largest);
  record(distance);
}

TEST_F(TrainingOnGpu, LayoutsHaveTheSameCurve) {
  const auto curve_with = [&](Device device, data::Layout layout, const std::string& name) {
    RunOptions given = options_on(device, name, kNumSteps);
    given.data.layout = layout;
    given.data.order_choice = data::OrderChoice::Packs;
    std::vector<double> curve = curve_of(given);
    record(curve, name);
    return curve;
  };
  const std::vector<double> expected = curve_with(Device::Cpu, data::Layout::Unpadded, "cpu");
  for (const auto& [layout, name] :
       {std::pair{data::Layout::Unpadded, "unpadded"}, std::pair{data::Layout::Padded, "padded"},
        std::pair{data::Layout::Packed, "packed"}}) {
    SCOPED_TRACE(name);
    const std::vector<double> curve = curve_with(Device::Cuda, layout, name);
    ASSERT_EQ(curve.size(), expected.size());
    const CurveDistance distance = distance_of(curve, expected);
    EXPECT_LE(distance.largest, kBand.largest);
    EXPECT_LE(distance.mean, kBand.mean);
    record(distance, std::string(name) + "_");
    RecordProperty(std::string(name) + "_end_distance", std::to_string(curve.back() - expected.back()));
  }
}

TEST_F(TrainingOnGpu, LayoutsHaveTheSameGradients) {
  const auto gradients_of = [&](Device device, data::Layout layout, std::string_view name) {
    RunOptions given = options_on(device, name, 1);
    given.data.layout = layout;
    given.data.order_choice = data::OrderChoice::Packs;
    return gradients_of_step_one(given);
  };
  const auto expect_all_in_band = [](const Gradients& actual, const Gradients& expected, double band) {
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, values] : expected) {
      test::expect_gradient_in_band(name, actual.at(name), values, band);
    }
  };
  const Gradients expected = gradients_of(Device::Cuda, data::Layout::Unpadded, "unpadded");
  for (const auto& [layout, name] :
       {std::pair{data::Layout::Padded, "padded"}, std::pair{data::Layout::Packed, "packed"}}) {
    SCOPED_TRACE(name);
    expect_all_in_band(gradients_of(Device::Cuda, layout, name), expected, test::kBFloat16Rearranged);
    EXPECT_GT(observer_.steps[0].padded_tokens, 0);
  }
  expect_all_in_band(expected, gradients_of(Device::Cpu, data::Layout::Unpadded, "cpu"),
                     test::kBFloat16Gradient);
}

TEST_F(TrainingOnGpu, AStoppedRunEndsWithTheBytesOfOneThatWasNot) {
  const RunOptions whole = options_on(Device::Cuda, "whole", 20);
  run(whole);
  const RunOptions parts = options_on(Device::Cuda, "parts", 20);
  const TrainingResult stopped = run_and_stop(parts, 7);
  EXPECT_EQ(stopped.end, TrainingResult::End::Stopped);
  EXPECT_GE(stopped.step, 7U);
  EXPECT_LE(stopped.step, 10U);  // asked for with two more under way, it goes out with the third
  EXPECT_EQ(run(parts).end, TrainingResult::End::Finished);
  EXPECT_EQ(observer_.summary.first_step, stopped.step);
  expect_same_checkpoint(parts, whole);
}

TEST_F(TrainingOnGpu, TakesThePlannedMemoryWithinOnePercent) {
  // What the driver and the libraries load with the first step is theirs, not the run's.
  run(options_on(Device::Cuda, "first", 1));
  // What comes again is recorded, which takes memory too.
  RunOptions given = options_on(Device::Cuda, "run", 10);
  given.model.layers = 1;
  given.model.width = 2048;
  given.model.heads = 32;
  given.model.mlp_width = 8192;
  given.run.threads = std::nullopt;
  const TrainingResult result = run(given);
  const auto planned = static_cast<double>(result.memory.planned_bytes);
  const auto taken = static_cast<double>(result.used_bytes);
  EXPECT_GT(planned, 5e8);
  EXPECT_NEAR(taken, planned, 0.01 * planned);
  RecordProperty("planned_bytes", std::to_string(planned));
  RecordProperty("taken_bytes", std::to_string(taken));
}

TEST_F(TrainingOnGpu, RefusesWhatDoesNotFitIntoTheCardBeforeTheFirstStep) {
  RunOptions given = options_on(Device::Cuda, "run", 1);
  given.model.width = 4096;
  given.model.heads = 64;
  given.model.mlp_width = 1 << 20;
  given.model.layers = 64;
  test::expect_user_error([&] { run(given); }, "of memory and");
  EXPECT_TRUE(observer_.steps.empty());
}

TEST_F(TrainingOnGpu, RefusesHeadsThatItsAttentionDoesNotKnow) {
  RunOptions given = options_on(Device::Cuda, "run", 1);
  given.model.heads = 4;
  test::expect_user_error([&] { run(given); }, "heads of width 64");
}

TEST_F(TrainingOnGpu, MuonAndSoapFollowTheCurvesOfTheCpu) {
  for (const auto& [kind, name] :
       {std::pair{optim::OptimizerKind::Muon, "muon"}, std::pair{optim::OptimizerKind::Soap, "soap"}}) {
    const double factor = kind == optim::OptimizerKind::Muon ? 4 : 20;
    SCOPED_TRACE(name);
    const auto curve_on = [&, kind = kind](Device device, const std::string& run) {
      RunOptions given = options_on(device, run, kNumSteps);
      given.optimizer.optimizer.kind = kind;
      return curve_of(given);
    };
    const std::vector<double> expected = curve_on(Device::Cpu, std::string("cpu-") + name);
    const std::vector<double> curve = curve_on(Device::Cuda, std::string("gpu-") + name);
    ASSERT_EQ(curve.size(), expected.size());
    const CurveDistance distance = distance_of(curve, expected);
    // Both make directions in which there is little but rounding as long as those that matter.
    EXPECT_LE(distance.largest, factor * kBand.largest);
    EXPECT_LE(distance.mean, factor * kBand.mean);
    record(distance, std::string(name) + "_");
  }
}

TEST_F(TrainingOnGpu, MuonAndSoapStoppedAndResumedEndWithTheBytesOfRunsThatWereNot) {
  for (const optim::OptimizerKind kind : {optim::OptimizerKind::Muon, optim::OptimizerKind::Soap}) {
    const std::string name = kind == optim::OptimizerKind::Muon ? "muon" : "soap";
    SCOPED_TRACE(name);
    RunOptions whole = options_on(Device::Cuda, name + "-whole", 20);
    whole.optimizer.optimizer.kind = kind;
    run(whole);
    RunOptions parts = whole;
    parts.run.directory = directory_ / (name + "-parts");
    run_and_stop(parts, 7);
    run(parts);
    expect_same_checkpoint(parts, whole);
  }
}

TEST_F(TrainingOnGpu, StepsThatAreNotFiniteAreSkippedAndTooManyEndTheRun) {
  RunOptions given = options_on(Device::Cuda, "run", 40);
  given.optimizer.learning_rate.peak = 1e30;
  given.optimizer.learning_rate.warmup = {2, optim::DurationUnit::Steps};
  given.run.max_skipped_steps = 3;
  test::expect_user_error([&] { run(given); }, "3 steps in a row were skipped");
  EXPECT_THAT(observer_.notes, testing::Contains(testing::HasSubstr("is skipped: loss")));
}

}  // namespace
}  // namespace plenum::train
