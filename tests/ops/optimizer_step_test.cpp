#include "plenum/kernels/optimizer_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/reference/optimizer_step.h"

namespace plenum::ops {
namespace {

using kernels::AdamStep;
using kernels::FlatRange;
using kernels::StepScalar;
using tensor::Device;

using Step = void (*)(const tensor::Stream&, const AdamStep&);

constexpr double kBeta1 = 0.8;
constexpr double kBeta2 = 0.95;
constexpr std::int64_t kElements = 300'000;
// One element, none, odd borders, gaps, one that takes many blocks, the end of the buffers.
const std::vector<FlatRange> kRanges = {
    {0, 1, true},
    {16, 16, true},
    {17, 50, false, 0.5F},
    {50, 1003, true},
    {1024, 270'001, true, 0.75F},
    {270'016, 290'000, false},
    {290'016, kElements, true},
};

struct Scalars {
  double learning_rate = 0;
  double correction1 = 1;
  double correction2 = 1;
  double gradient_scale = 1;
  double loss = 0;
  double num_updates = 0;
  bool is_skipped = false;
};

double& at(TestTensor<double>& scalars, StepScalar which) {
  return scalars.values()[index_of(which)];
}

TestTensor<double> scalars_of(const Scalars& given) {
  TestTensor<double> scalars({static_cast<std::int64_t>(kernels::kNumStepScalars)});
  at(scalars, StepScalar::LearningRate) = given.learning_rate;
  at(scalars, StepScalar::Correction1) = given.correction1;
  at(scalars, StepScalar::Correction2) = given.correction2;
  at(scalars, StepScalar::GradientScale) = given.gradient_scale;
  at(scalars, kernels::loss_of(1)) = given.loss;
  at(scalars, StepScalar::NumUpdates) = given.num_updates;
  at(scalars, StepScalar::IsSkipped) = given.is_skipped ? 1 : 0;
  return scalars;
}

/// Buffers of an optimizer. `compute_weight` is what the GPU's products read; the CPU has no such thing.
struct Buffers {
  std::int64_t size = kElements;
  TestTensor<float> gradient = random_tensor({size}, 1);
  TestTensor<float> weight = random_tensor({size}, 2);
  TestTensor<float> first_moment = random_tensor({size}, 3);
  TestTensor<float> second_moment = random_tensor({size}, 4);
  TestTensor<float> compute_weight = TestTensor<float>({size}, 5.0F);
  TestTensor<double> scalars =
      scalars_of({.learning_rate = 0.02, .correction1 = 0.7, .correction2 = 0.4, .gradient_scale = 0.5});
  std::vector<FlatRange> ranges = kRanges;
  double epsilon = 1e-3;
  double decay = 0.1;

  Buffers() {
    for (float& value : second_moment.values()) value = value * value;
  }

  void run(Step step, const OpContext& context) {
    const std::vector<std::int64_t> chunks = kernels::optimizer_chunks(ranges);
    const TestTensor<std::int64_t> chunks_C4({static_cast<std::int64_t>(chunks.size() / 4), 4}, chunks);
    const bool is_on_gpu = context.stream().device() == Device::Cuda;
    Arguments arguments(context);
    step(context.stream(),
         {.ranges = ranges,
          .work = {.chunks_C4 = arguments.in(chunks_C4)},
          .gradient_N = arguments.in(gradient),
          .weight_N = arguments.out(weight),
          .first_moment_N = arguments.out(first_moment),
          .second_moment_N = arguments.out(second_moment),
          .compute_weight_N = is_on_gpu ? arguments.out_compute(compute_weight) : tensor::TensorView(),
          .scalars_C = arguments.in(scalars),
          .beta1 = kBeta1,
          .beta2 = kBeta2,
          .epsilon = epsilon,
          .decay = decay});
    arguments.fetch();
  }

  reference::OptimizedTensor range(const FlatRange& range) const {
    const auto part = [&](const TestTensor<float>& tensor) {
      const std::vector<double> all = tensor.doubles();
      return std::vector<double>(all.begin() + range.begin, all.begin() + range.end);
    };
    return {part(weight), part(gradient), part(first_moment), part(second_moment)};
  }

  reference::OptimizerSettings settings(const FlatRange& range) {
    return {at(scalars, StepScalar::LearningRate) * range.rate_factor,
            kBeta1,
            kBeta2,
            epsilon,
            range.is_decayed ? decay : 0,
            at(scalars, StepScalar::Correction1),
            at(scalars, StepScalar::Correction2),
            at(scalars, StepScalar::GradientScale)};
  }
};

/// Whether everything that a step may change is the same.
bool has_same_state(const Buffers& a, const Buffers& b) {
  return a.weight == b.weight && a.first_moment == b.first_moment && a.second_moment == b.second_moment &&
         a.compute_weight == b.compute_weight;
}

class OptimizerStepOn : public OnDevice {
 protected:
  static OpContext context() {
    return OpContext(device(), std::max<std::size_t>(
                                   kernels::optimizer_scratch_bytes(device(), kElements, kRanges.size()), 1));
  }

  /// Compares all ranges after `step`, and that nothing outside them was touched.
  template <typename Reference>
  static void expect_step(Step step, Reference reference_step) {
    Buffers buffers;
    const Buffers before = buffers;
    Buffers untouched = buffers;
    buffers.run(step, context());
    for (const FlatRange& range : kRanges) {
      reference::OptimizedTensor expected = before.range(range);
      reference_step(expected, buffers.settings(range), range.is_decayed);
      const auto begin = static_cast<std::size_t>(range.begin);
      const auto count = static_cast<std::size_t>(range.end - range.begin);
      const auto take = [&](const TestTensor<float>& from, TestTensor<float>& to) {
        std::copy_n(from.values().begin() + range.begin, count, to.values().begin() + range.begin);
      };
      const auto compare = [&](const TestTensor<float>& actual, TestTensor<float>& rest,
                               const std::vector<double>& values, const char* name) {
        expect_near(std::span<const float>(actual.values()).subspan(begin, count), values,
                    fmt::format("{} of [{}, {})", name, range.begin, range.end), 1e-6);
        take(actual, rest);
      };
      compare(buffers.weight, untouched.weight, expected.weight, "weight");
      compare(buffers.first_moment, untouched.first_moment, expected.first_moment, "first moment");
      compare(buffers.second_moment, untouched.second_moment, expected.second_moment, "second moment");
      if (device() == Device::Cuda) take(rounded(buffers.weight, device()), untouched.compute_weight);
    }
    EXPECT_TRUE(has_same_state(buffers, untouched))
        << "elements outside the ranges changed, or copies differ";
  }
};
INSTANTIATE_TEST_SUITE_P(OptimizerStep, OptimizerStepOn, kDevices, device_of);

TEST_P(OptimizerStepOn, AdamMatchesTheReference) {
  expect_step(&kernels::adam_step,
              [](reference::OptimizedTensor& tensor, const reference::OptimizerSettings& settings, bool) {
                reference::adam_step(tensor, settings);
              });
}

TEST_P(OptimizerStepOn, LambMatchesTheReference) {
  expect_step(&kernels::lamb_step,
              [](reference::OptimizedTensor& tensor, const reference::OptimizerSettings& settings,
                 bool is_decayed) { reference::lamb_step(tensor, settings, is_decayed); });
}

TEST_P(OptimizerStepOn, LambTakesTheRatioForOneWhereANormIsZero) {
  Buffers buffers;
  buffers.ranges = {{0, 20, true}, {20, 40, true}};
  for (TestTensor<float>* tensor :
       {&buffers.gradient, &buffers.weight, &buffers.first_moment, &buffers.second_moment}) {
    std::fill_n(tensor->values().begin(), 40, 0.0F);
  }
  std::fill_n(buffers.gradient.values().begin(), 20, 1.0F);
  std::fill_n(buffers.weight.values().begin() + 20, 20, 3.0F);
  buffers.scalars = scalars_of({.learning_rate = 0.5, .correction1 = 1 - kBeta1, .correction2 = 1 - kBeta2});
  buffers.epsilon = 1e-6;
  buffers.decay = 0;
  buffers.run(&kernels::lamb_step, context());
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(buffers.weight.values()[i], -0.5, 1e-5);
  for (std::size_t i = 20; i < 40; ++i) EXPECT_EQ(buffers.weight.values()[i], 3);
}

TEST_P(OptimizerStepOn, GivesTheSameBytesTwice) {
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    std::vector<Buffers> runs(2);
    for (Buffers& run : runs) run.run(step, context());
    EXPECT_TRUE(has_same_state(runs[0], runs[1]));
  }
}

TEST_P(OptimizerStepOn, ChangesNothingWhenSkipped) {
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    Buffers buffers;
    at(buffers.scalars, StepScalar::IsSkipped) = 1;
    const Buffers before = buffers;
    buffers.run(step, context());
    EXPECT_TRUE(has_same_state(buffers, before));
  }
}

TEST_P(OptimizerStepOn, TakesNoRangesAndEmptyOnes) {
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    for (const std::vector<FlatRange>& ranges :
         std::vector<std::vector<FlatRange>>{{}, {{7, 7, true}, {9, 9, false}}}) {
      Buffers buffers;
      buffers.ranges = ranges;
      const Buffers before = buffers;
      buffers.run(step, context());
      EXPECT_TRUE(has_same_state(buffers, before));
    }
  }
}

TEST_P(OptimizerStepOn, RefusesRangesOutOfOrderOrOutsideTheBuffers) {
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    for (const std::vector<FlatRange>& ranges : std::vector<std::vector<FlatRange>>{
             {{10, 20, true}, {0, 5, true}}, {{0, 10, true}, {9, 20, true}}, {{0, kElements + 1, true}}}) {
      Buffers buffers;
      buffers.ranges = ranges;
      EXPECT_THROW(buffers.run(step, context()), base::InternalError);
    }
  }
}

TEST(OptimizerStep, GivesTheSameBytesOnThreeThreads) {
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    std::vector<Buffers> runs(2);
    runs[0].run(step, OpContext(1));
    runs[1].run(step, OpContext(3));
    EXPECT_TRUE(has_same_state(runs[0], runs[1]));
  }
}

TEST(OptimizerStep, CutsRangesIntoChunksThatCoverThemInOrder) {
  const std::vector<std::int64_t> chunks_C4 = kernels::optimizer_chunks(kRanges);
  std::int64_t num_chunks = 0;
  for (const FlatRange& range : kRanges) {
    num_chunks += workspace::num_optimizer_chunks(range.end - range.begin);
  }
  EXPECT_EQ(std::ssize(chunks_C4), 4 * num_chunks);
  std::vector<std::int64_t> end_R;
  for (const FlatRange& range : kRanges) end_R.push_back(range.begin);
  for (std::size_t i = 0; i < chunks_C4.size(); i += 4) {
    const auto range = static_cast<std::size_t>(chunks_C4[i + 3]);
    EXPECT_EQ(chunks_C4[i], end_R[range]);
    EXPECT_GT(chunks_C4[i + 1], chunks_C4[i]);
    EXPECT_EQ((chunks_C4[i + 2] & 0xffffffff) == 1, kRanges[range].is_decayed);
    EXPECT_EQ(std::bit_cast<float>(static_cast<std::int32_t>(chunks_C4[i + 2] >> 32)),
              kRanges[range].rate_factor);
    end_R[range] = chunks_C4[i + 1];
  }
  for (std::size_t i = 0; i < kRanges.size(); ++i) EXPECT_EQ(end_R[i], kRanges[i].end);
}

/// What is decided for a gradient, after three updates.
TestTensor<double> decided(const OpContext& context, const TestTensor<float>& gradient, double clip_norm = 1,
                           double loss = 7, bool is_bias_corrected = true) {
  TestTensor<double> scalars = scalars_of({.loss = loss, .num_updates = 3});
  Arguments arguments(context);
  const tensor::TensorView scalars_C = arguments.out(scalars);
  kernels::add_gradient_squares(context.stream(),
                                {.gradient_N = arguments.in(gradient), .scalars_C = scalars_C});
  kernels::decide_step(context.stream(), {.clip_norm = clip_norm,
                                          .beta1 = kBeta1,
                                          .beta2 = kBeta2,
                                          .is_bias_corrected = is_bias_corrected,
                                          .scalars_C = scalars_C});
  arguments.fetch();
  return scalars;
}

class DecideStepOn : public OptimizerStepOn {};
INSTANTIATE_TEST_SUITE_P(DecideStep, DecideStepOn, kDevices, device_of);

TEST_P(DecideStepOn, TakesTheNormOfADoubleSumForAnyCount) {
  const OpContext context = DecideStepOn::context();
  for (const std::int64_t count : {0, 1, 15, 16, 17, 255, 257, 4096, 100'003}) {
    const TestTensor<float> values = random_tensor({count}, 5, 100);
    double expected = 0;
    for (const double value : values.doubles()) expected += value * value;
    expected = std::sqrt(expected);
    TestTensor<double> scalars = decided(context, values);
    EXPECT_NEAR(at(scalars, StepScalar::GradientNorm), expected, 1e-12 * expected) << count;
    EXPECT_EQ(scalars, decided(context, values)) << count;
  }
}

TEST_P(DecideStepOn, AddsUpTheSquaresOfParts) {
  const OpContext context = DecideStepOn::context();
  const TestTensor<float> gradient({1000}, 3.0F);
  TestTensor<double> scalars = scalars_of({});
  at(scalars, StepScalar::GradientSquares) = 5;
  Arguments arguments(context);
  const tensor::ConstTensorView gradient_N = arguments.in(gradient);
  const tensor::TensorView scalars_C = arguments.out(scalars);
  for (const auto& [begin, count] : {std::pair<std::int64_t, std::int64_t>{0, 128}, {128, 0}, {128, 872}}) {
    kernels::add_gradient_squares(context.stream(),
                                  {.gradient_N = gradient_N.rows(begin, count), .scalars_C = scalars_C});
  }
  arguments.fetch();
  EXPECT_EQ(at(scalars, StepScalar::GradientSquares), 5 + 9 * 1000);
}

TEST_P(DecideStepOn, ClipsAndCountsAndCorrects) {
  const OpContext context = DecideStepOn::context();
  const TestTensor<float> gradient({16}, 2.0F);  // of norm 8
  TestTensor<double> scalars = decided(context, gradient, 2);
  EXPECT_EQ(at(scalars, StepScalar::GradientNorm), 8);
  EXPECT_EQ(at(scalars, StepScalar::GradientScale), 0.25);
  EXPECT_EQ(at(scalars, StepScalar::IsSkipped), 0);
  EXPECT_EQ(at(scalars, StepScalar::NumUpdates), 4);
  EXPECT_NEAR(at(scalars, StepScalar::Correction1), 1 - std::pow(kBeta1, 4), 1e-15);
  EXPECT_NEAR(at(scalars, StepScalar::Correction2), 1 - std::pow(kBeta2, 4), 1e-15);
  EXPECT_EQ(at(scalars, kernels::loss_of(1)), 7);
  for (const double clip_norm : {0.0, 8.0, 9.0}) {
    TestTensor<double> unclipped = decided(context, gradient, clip_norm);
    EXPECT_EQ(at(unclipped, StepScalar::GradientScale), 1) << clip_norm;
  }
  TestTensor<double> uncorrected = decided(context, gradient, 2, 7, false);
  EXPECT_EQ(at(uncorrected, StepScalar::NumUpdates), 4);
  EXPECT_EQ(at(uncorrected, StepScalar::Correction1), 1);
  EXPECT_EQ(at(uncorrected, StepScalar::Correction2), 1);
}

TEST_P(DecideStepOn, SkipsWhatIsNotFiniteAnywhere) {
  const OpContext context = DecideStepOn::context();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (std::size_t i = 0; i < 5003; i += 61) {
      TestTensor<float> values({5003}, 1.0F);
      values.values()[i] = bad;
      TestTensor<double> scalars = decided(context, values);
      EXPECT_EQ(at(scalars, StepScalar::IsSkipped), 1) << bad << " at " << i;
      EXPECT_EQ(at(scalars, StepScalar::NumUpdates), 3) << bad << " at " << i;
    }
    TestTensor<double> scalars = decided(context, TestTensor<float>({16}, 1.0F), 1, bad);
    EXPECT_EQ(at(scalars, StepScalar::IsSkipped), 1) << "loss " << bad;
    EXPECT_EQ(at(scalars, StepScalar::NumUpdates), 3) << "loss " << bad;
  }
}

TEST_P(DecideStepOn, SkipsWhereTheLossOfAnyObjectiveIsNotFinite) {
  const OpContext context = DecideStepOn::context();
  for (std::size_t i = 0; i < batch::kMostObjectives; ++i) {
    TestTensor<double> scalars = scalars_of({});
    at(scalars, kernels::loss_of(i)) = std::numeric_limits<double>::quiet_NaN();
    Arguments arguments(context);
    kernels::decide_step(context.stream(), {.scalars_C = arguments.out(scalars)});
    arguments.fetch();
    EXPECT_EQ(at(scalars, StepScalar::IsSkipped), 1) << "objective " << i;
  }
}

TEST_P(DecideStepOn, DoesNotOverflowWhereFloatsWould) {
  const OpContext context = DecideStepOn::context();
  TestTensor<double> scalars = decided(context, TestTensor<float>({100}, 1e30F));
  EXPECT_NEAR(at(scalars, StepScalar::GradientNorm), 1e31, 1e25);
  EXPECT_EQ(at(scalars, StepScalar::IsSkipped), 0);
}

TEST(StepScalars, KeepObjectivesApart) {
  std::set<std::size_t> agreed = {index_of(StepScalar::GradientSquares), index_of(StepScalar::Stop),
                                  index_of(StepScalar::TimeUp), index_of(StepScalar::CheckpointDue),
                                  index_of(StepScalar::EvaluationDue)};
  std::set<std::size_t> given = {index_of(StepScalar::LearningRate)};
  for (std::size_t i = 0; i < batch::kMostObjectives; ++i) {
    agreed.insert(index_of(kernels::loss_of(i)));
    given.insert(index_of(kernels::loss_scale_of(i)));
  }
  EXPECT_EQ(agreed.size(), kernels::kNumAgreedScalars);
  EXPECT_EQ(*agreed.rbegin() + 1, kernels::kNumAgreedScalars);
  EXPECT_EQ(given.size(), kernels::kNumGivenScalars - kernels::kNumAgreedScalars);
  EXPECT_EQ(*given.begin(), kernels::kNumAgreedScalars);
  EXPECT_THROW(kernels::loss_of(batch::kMostObjectives), base::InternalError);
  EXPECT_THROW(kernels::loss_scale_of(batch::kMostObjectives), base::InternalError);
}

TEST(DecideStep, GivesTheSameBytesOnThreeThreads) {
  const TestTensor<float> values = random_tensor({100'003}, 5, 100);
  EXPECT_EQ(decided(OpContext(1), values), decided(OpContext(3), values));
}

}  // namespace
}  // namespace plenum::ops
