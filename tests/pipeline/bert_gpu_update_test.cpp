#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/philox.h"
#include "plenum/base/thread_pool.h"
#include "plenum/batch/step_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/model/named_tensors.h"
#include "plenum/optim/optimizer.h"

#include "tests/pipeline/bert_run.h"
#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"
#include "tests/support/wide_heads.h"

// Ten steps of training in bf16 on a GPU beside fp32 on the CPU, on the same sequences with the same dropout.

namespace plenum::pipeline {
namespace {

using optim::OptimizerKind;
using plenum::test::wide_heads;
using tensor::Device;

constexpr std::uint64_t kNumSteps = 10;

/// An optimizer, and a rate at which the loss goes down without leaps. Without bias correction the first ten
/// steps of BERT's own Adam are three to six times as long: with AdamW's rate it leaps, and the loss at the
/// tenth step moves by 3 % when nothing but weights are rounded.
struct Training {
  const char* name;
  OptimizerKind optimizer;
  double learning_rate;
};
constexpr std::array<Training, 3> kTrainings = {{{"AdamW", OptimizerKind::AdamW, 1e-3},
                                                 {"BertAdam", OptimizerKind::BertAdam, 1.5e-4},
                                                 {"LAMB", OptimizerKind::Lamb, 1e-3}}};

const std::vector<test::TestSequence>& sequences() {
  static const std::vector<test::TestSequence> all = test::random_sequences(9, 200, 97, 5);
  return all;
}

batch::StepBatch batch_of(std::uint64_t step) {
  return deal_out(step, sequences(), 1);
}

BertRun run_of(Device device, OptimizerKind optimizer, bool records_work = true) {
  return {bert_schedule(wide_heads(), 1, 1),
          {.model = wide_heads(),
           .capacity = test::capacity_of(batch_of(0).micro_batches),
           .optimizer = {.kind = optimizer},
           .seed = 17,
           .device = device,
           .records_work = records_work}};
}

tensor::TensorView view_of(std::vector<float>& values) {
  return {values.data(), {static_cast<std::int64_t>(values.size())}};
}

/// What the CPU's optimizer makes of a gradient.
Trained updated(Trained state, std::vector<float> gradients, const Training& training,
                std::uint64_t num_updates) {
  std::array<double, kernels::kNumStepScalars> scalars{};
  scalars[kernels::index_of(kernels::StepScalar::LearningRate)] = training.learning_rate;
  scalars[kernels::index_of(kernels::StepScalar::NumUpdates)] = static_cast<double>(num_updates);
  base::ThreadPool pool(1);
  const describe::ParameterTable table(describe::describe_bert(wide_heads()));
  optim::Optimizer optimizer({.kind = training.optimizer}, table, describe::ParameterShard(table),
                             {.weights_N = view_of(state.weights),
                              .compute_weights_N = view_of(state.weights),
                              .gradients_N = view_of(gradients),
                              .first_moments_S = view_of(state.first_moments),
                              .second_moments_S = view_of(state.second_moments)});
  const tensor::Stream stream(pool, {});
  const tensor::TensorView scalars_C(scalars.data(), {static_cast<std::int64_t>(scalars.size())});
  optimizer.add_squares(stream, {0, static_cast<std::int64_t>(gradients.size())}, scalars_C);
  optimizer.decide(stream, scalars_C);
  optimizer.step(stream, scalars_C, {{}, base::LayerId::at(table.model().layers.size())});
  return state;
}

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  std::ranges::transform(a, b, result.begin(), std::minus<>());
  return result;
}

/// One of the two bf16 numbers around a value, the nearer one more often: so that the mean stays.
float rounded_by_chance(float value, std::uint32_t chance) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + (chance & 0xFFFFU)) & 0xFFFF0000U);
}

/// The losses of training on the CPU. With a seed each step computes with weights that were rounded to bf16,
/// and goes on from exact ones.
std::vector<double> losses_on_cpu(const Training& training, std::uint64_t rounding_seed = 0) {
  BertRun run = run_of(Device::Cpu, training.optimizer);
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < kNumSteps; ++step) {
    const std::vector<float> exact = run.weights();
    std::vector<float> used = exact;
    const base::RandomFunction random(rounding_seed, base::Purpose::Initialisation, step);
    for (std::size_t i = 0; rounding_seed > 0 && i < used.size(); ++i) {
      used[i] = rounded_by_chance(used[i], random(i)[0]);
    }
    run.set_weights(used);
    losses.push_back(run.step(batch_of(step), training.learning_rate).loss());
    std::vector<float> after = difference(run.weights(), used);
    std::ranges::transform(after, exact, after.begin(), std::plus<>());
    run.set_weights(after);
  }
  return losses;
}

double norm_of(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

/// What a single step may change in a loss: a mean over more tokens than kBFloat16Loss has in mind.
constexpr double kLossOfAStep = 0.4 * test::kBFloat16Loss;

/// How far from the CPU's losses those of a GPU may be, relative to them, up to each step. An update turns
/// where rounding turned the sign of a small gradient, and where that leads depends on the model and the
/// rate: so it is measured by what the rounding of weights alone does. Roundings of activations and gradients
/// come to that, so three times as much is allowed.
std::vector<double> trajectory_band(const Training& training, const std::vector<double>& exact) {
  std::vector<double> band(kNumSteps, kLossOfAStep);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::vector<double> rounded = losses_on_cpu(training, seed);
    for (std::size_t step = 0; step < kNumSteps; ++step) {
      band[step] = std::max(band[step], 3 * std::abs(rounded[step] / exact[step] - 1));
    }
  }
  for (std::size_t step = 1; step < kNumSteps; ++step) band[step] = std::max(band[step], band[step - 1]);
  return band;
}

TEST(TrajectoryBand, IsNarrowerThanWhatASmallMistakeWouldMake) {
  for (Training training : kTrainings) {
    SCOPED_TRACE(training.name);
    const std::vector<double> exact = losses_on_cpu(training);
    const std::vector<double> band = trajectory_band(training, exact);
    RecordProperty(training.name, std::to_string(band.back()));
    training.learning_rate *= 0.9;
    EXPECT_GT(losses_on_cpu(training).back() / exact.back() - 1, band.back());
  }
}

using BertOnGpu = test::OnGpu<>;

TEST_F(BertOnGpu, FollowsTheCpuForTenSteps) {
  for (const Training& training : kTrainings) {
    SCOPED_TRACE(training.name);
    const std::vector<double> expected = losses_on_cpu(training);
    const std::vector<double> band = trajectory_band(training, expected);
    BertRun gpu = run_of(Device::Cuda, training.optimizer);
    for (std::uint64_t step = 0; step < kNumSteps; ++step) {
      const StepOutcome outcome = gpu.step(batch_of(step), training.learning_rate);
      EXPECT_LE(std::abs(outcome.loss() / expected[step] - 1), band[step]) << step;
      EXPECT_EQ(outcome.num_updates, step + 1);
      RecordProperty(std::string(training.name) + "_" + std::to_string(step),
                     std::to_string(outcome.loss() / expected[step] - 1));
    }
  }
}

TEST_F(BertOnGpu, StepsAsTheCpuDoesFromTheSameState) {
  // The less is left to learn, the more do the rows cancel that a gradient adds up, while their roundings do
  // not: in single tensors more than in all of them, and most in biases that have little of the gradient.
  constexpr double kTensor = 2 * test::kBFloat16Gradient;
  constexpr double kLeastShare = 0.02;
  constexpr double kMost = 0.5;  // so that a gradient that is left out is told from one that is rounded
  // Of its largest so far. A tensor of few elements passes zero now and then, where its roundings stay.
  constexpr double kPassingZero = 0.1;
  const describe::ParameterTable table(describe::describe_bert(wide_heads()));
  for (const Training& training : kTrainings) {
    SCOPED_TRACE(training.name);
    BertRun gpu = run_of(Device::Cuda, training.optimizer);
    BertRun cpu = run_of(Device::Cpu, training.optimizer);
    std::map<std::string, double> largest;
    for (std::uint64_t step = 0; step < kNumSteps; ++step) {
      SCOPED_TRACE(step);
      const Trained before = cpu.trained();
      gpu.go_on_from(before, step);
      const StepOutcome actual = gpu.step(batch_of(step), training.learning_rate);
      const StepOutcome expected = cpu.step(batch_of(step), training.learning_rate);
      EXPECT_NEAR(actual.loss(), expected.loss(), kLossOfAStep * expected.loss());
      EXPECT_EQ(actual.num_updates, expected.num_updates);

      std::vector<float> gradients = gpu.gradients();
      std::vector<float> expected_gradients = cpu.gradients();
      EXPECT_LE(test::relative_distance(gradients, expected_gradients), test::kBFloat16Gradient);
      for (const describe::Parameter& parameter : table.parameters()) {
        const std::span<const float> part = model::elements_of(parameter, expected_gradients);
        const double norm = norm_of(part);
        largest[parameter.name] = std::max(largest[parameter.name], norm);
        const double share = norm / norm_of(expected_gradients);
        const double band = std::min(kMost, kTensor * std::max(1.0, kLeastShare / share));
        test::expect_gradient_in_band(parameter.name, model::elements_of(parameter, gradients), part,
                                      band * std::max(1.0, kPassingZero * largest[parameter.name] / norm));
      }

      // From its own gradient the GPU's update is the CPU's: in fp32, to the rounding of the new weights.
      const Trained after = gpu.trained();
      const Trained by_cpu = updated(before, gradients, training, step);
      EXPECT_LE(test::relative_distance(difference(after.weights, before.weights),
                                        difference(by_cpu.weights, before.weights)),
                2e-5);
      EXPECT_LE(test::relative_distance(after.first_moments, by_cpu.first_moments), 1e-6);
      EXPECT_LE(test::relative_distance(after.second_moments, by_cpu.second_moments), 1e-6);
    }
  }
}

TEST_F(BertOnGpu, GivesTheSameBytesWhetherItsPassesAreRecordedOrNot) {
  // Two shapes take turns. Each is recorded when it comes again, and what was recorded runs from then on.
  const auto some = [](std::uint64_t step) {
    return deal_out(step, std::span(sequences()).first(step / 2 % 2 == 0 ? 9 : 5), 1);
  };
  BertRun recorded = run_of(Device::Cuda, OptimizerKind::AdamW);
  BertRun plain = run_of(Device::Cuda, OptimizerKind::AdamW, /*records_work=*/false);
  for (std::uint64_t step = 0; step < 12; ++step) {
    EXPECT_EQ(recorded.step(some(step)).loss(), plain.step(some(step)).loss()) << step;
  }
  const std::vector<float> weights = recorded.weights();
  EXPECT_EQ(std::memcmp(weights.data(), plain.weights().data(), weights.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace plenum::pipeline
