#include "plenum/kernels/optimizer_step.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/optimizer_step.h"

namespace plenum::ops {
namespace {

using kernels::AdamStep;
using kernels::FlatRange;
using kernels::StepNumber;

constexpr std::int64_t kElements = 300'000;
// One element, none, odd borders, gaps, one that takes many blocks, the end of the buffers.
const std::vector<FlatRange> kRanges = {
    {0, 1, true},
    {16, 16, true},
    {17, 50, false},
    {50, 1003, true},
    {1024, 270'001, true},
    {270'016, 290'000, false},
    {290'016, kElements, true},
};

struct Numbers {
  double learning_rate = 0;
  double correction1 = 1;
  double correction2 = 1;
  double gradient_scale = 1;
  double masked_loss = 0;
  double num_updates = 0;
  bool is_skipped = false;
};

double& at(TestTensor<double>& numbers, StepNumber which) {
  return numbers.values()[static_cast<std::size_t>(which)];
}

TestTensor<double> numbers_of(const Numbers& given) {
  TestTensor<double> numbers({static_cast<std::int64_t>(kernels::kNumStepNumbers)});
  at(numbers, StepNumber::LearningRate) = given.learning_rate;
  at(numbers, StepNumber::Correction1) = given.correction1;
  at(numbers, StepNumber::Correction2) = given.correction2;
  at(numbers, StepNumber::GradientScale) = given.gradient_scale;
  at(numbers, StepNumber::MaskedLoss) = given.masked_loss;
  at(numbers, StepNumber::NumUpdates) = given.num_updates;
  at(numbers, StepNumber::IsSkipped) = given.is_skipped ? 1 : 0;
  return numbers;
}

struct Buffers {
  TestTensor<float> gradient = random_tensor({kElements}, 1);
  TestTensor<float> weight = random_tensor({kElements}, 2);
  TestTensor<float> first_moment = random_tensor({kElements}, 3);
  TestTensor<float> second_moment = random_tensor({kElements}, 4);
  TestTensor<double> numbers =
      numbers_of({.learning_rate = 0.02, .correction1 = 0.7, .correction2 = 0.4, .gradient_scale = 0.5});

  Buffers() {
    for (float& value : second_moment.values()) value = value * value;
  }

  AdamStep step() {
    return {.ranges = kRanges,
            .gradient_N = gradient.view(),
            .weight_N = weight,
            .first_moment_N = first_moment,
            .second_moment_N = second_moment,
            .numbers_C = numbers.view(),
            .beta1 = 0.8,
            .beta2 = 0.95,
            .epsilon = 1e-3,
            .decay = 0.1};
  }

  reference::OptimizedTensor range(const FlatRange& range) const {
    const auto part = [&](const TestTensor<float>& tensor) {
      const std::vector<double> all = tensor.doubles();
      return std::vector<double>(all.begin() + range.begin, all.begin() + range.end);
    };
    return {part(weight), part(gradient), part(first_moment), part(second_moment)};
  }

  friend bool operator==(const Buffers&, const Buffers&) = default;
};

reference::OptimizerSettings settings_of(const AdamStep& step, bool is_decayed) {
  const auto number = [&](StepNumber which) {
    return step.numbers_C.data<double>()[static_cast<std::size_t>(which)];
  };
  return {number(StepNumber::LearningRate),
          step.beta1,
          step.beta2,
          step.epsilon,
          is_decayed ? step.decay : 0,
          number(StepNumber::Correction1),
          number(StepNumber::Correction2),
          number(StepNumber::GradientScale)};
}

using Step = void (*)(const tensor::Stream&, const AdamStep&);

/// Compares all ranges after `step`, and that nothing outside them was touched.
template <typename Reference>
void expect_step(Step step, Reference reference_step) {
  const OpContext context;
  Buffers buffers;
  const Buffers before = buffers;
  Buffers untouched = buffers;
  const AdamStep args = buffers.step();
  step(context.stream(), args);
  for (const FlatRange& range : kRanges) {
    reference::OptimizedTensor expected = before.range(range);
    reference_step(expected, settings_of(args, range.is_decayed), range.is_decayed);
    const auto compare = [&](TestTensor<float>& actual, TestTensor<float>& rest,
                             const std::vector<double>& values, const char* name) {
      const auto begin = static_cast<std::size_t>(range.begin);
      const auto count = static_cast<std::size_t>(range.end - range.begin);
      expect_near(std::span<const float>(actual.values()).subspan(begin, count), values,
                  fmt::format("{} of [{}, {})", name, range.begin, range.end), 1e-6);
      std::copy_n(actual.values().begin() + range.begin, count, rest.values().begin() + range.begin);
    };
    compare(buffers.weight, untouched.weight, expected.weight, "weight");
    compare(buffers.first_moment, untouched.first_moment, expected.first_moment, "first moment");
    compare(buffers.second_moment, untouched.second_moment, expected.second_moment, "second moment");
  }
  EXPECT_EQ(buffers, untouched) << "gradients or elements outside the ranges changed";
}

TEST(AdamStep, MatchesTheReference) {
  expect_step(&kernels::adam_step,
              [](reference::OptimizedTensor& tensor, const reference::OptimizerSettings& settings, bool) {
                reference::adam_step(tensor, settings);
              });
}

TEST(LambStep, MatchesTheReference) {
  expect_step(&kernels::lamb_step,
              [](reference::OptimizedTensor& tensor, const reference::OptimizerSettings& settings,
                 bool is_decayed) { reference::lamb_step(tensor, settings, is_decayed); });
}

TEST(LambStep, TakesTheRatioForOneWhereANormIsZero) {
  const OpContext context;
  const std::vector<FlatRange> ranges = {{0, 20, true}, {20, 40, true}};
  TestTensor<float> gradient({40});
  std::fill_n(gradient.values().begin(), 20, 1.0F);
  TestTensor<float> weight({40});
  std::fill_n(weight.values().begin() + 20, 20, 3.0F);
  TestTensor<float> first({40});
  TestTensor<float> second({40});
  const TestTensor<double> numbers =
      numbers_of({.learning_rate = 0.5, .correction1 = 0.1, .correction2 = 0.001});
  kernels::lamb_step(context.stream(), {.ranges = ranges,
                                        .gradient_N = gradient.view(),
                                        .weight_N = weight,
                                        .first_moment_N = first,
                                        .second_moment_N = second,
                                        .numbers_C = numbers.view(),
                                        .epsilon = 1e-6,
                                        .decay = 0});
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(weight.values()[i], -0.5, 1e-5);
  for (std::size_t i = 20; i < 40; ++i) EXPECT_EQ(weight.values()[i], 3);
}

TEST(OptimizerStep, GivesTheSameBytesTwiceAndOnThreeThreads) {
  const OpContext one;
  const OpContext three(3);
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    std::vector<Buffers> runs(3);
    for (std::size_t run = 0; run < 3; ++run) {
      step(run == 2 ? three.stream() : one.stream(), runs[run].step());
    }
    EXPECT_EQ(runs[0], runs[1]);
    EXPECT_EQ(runs[0], runs[2]);
  }
}

TEST(OptimizerStep, RefusesRangesOutOfOrderOrOutsideTheBuffers) {
  const OpContext context;
  for (const std::vector<FlatRange>& ranges : std::vector<std::vector<FlatRange>>{
           {{10, 20, true}, {0, 5, true}}, {{0, 10, true}, {9, 20, true}}, {{0, kElements + 1, true}}}) {
    Buffers buffers;
    AdamStep step = buffers.step();
    step.ranges = ranges;
    EXPECT_THROW(kernels::adam_step(context.stream(), step), base::InternalError);
    EXPECT_THROW(kernels::lamb_step(context.stream(), step), base::InternalError);
  }
}

TEST(OptimizerStep, ChangesNothingWhenSkipped) {
  const OpContext context;
  for (const Step step : {&kernels::adam_step, &kernels::lamb_step}) {
    Buffers buffers;
    at(buffers.numbers, StepNumber::IsSkipped) = 1;
    const Buffers before = buffers;
    step(context.stream(), buffers.step());
    EXPECT_EQ(buffers, before);
  }
}

/// What is decided for a gradient, after three updates.
TestTensor<double> decided(const tensor::Stream& stream, const TestTensor<float>& gradient,
                           double clip_norm = 1, double masked_loss = 7) {
  TestTensor<double> numbers = numbers_of({.masked_loss = masked_loss, .num_updates = 3});
  kernels::decide_step(stream, {.gradient_N = gradient.view(),
                                .clip_norm = clip_norm,
                                .beta1 = 0.8,
                                .beta2 = 0.95,
                                .numbers_C = numbers});
  return numbers;
}

TEST(DecideStep, TakesTheNormOfADoubleSumForAnyCountAndThreads) {
  const OpContext one;
  const OpContext three(3);
  for (const std::int64_t count : {0, 1, 15, 16, 17, 255, 257, 4096, 100'003}) {
    const TestTensor<float> values = random_tensor({count}, 5, 100);
    double expected = 0;
    for (const double value : values.doubles()) expected += value * value;
    expected = std::sqrt(expected);
    TestTensor<double> numbers = decided(one.stream(), values);
    EXPECT_NEAR(at(numbers, StepNumber::GradientNorm), expected, 1e-12 * expected) << count;
    EXPECT_EQ(numbers, decided(three.stream(), values)) << count;
  }
}

TEST(DecideStep, ClipsAndCountsAndCorrects) {
  const OpContext context;
  const TestTensor<float> gradient({16}, 2.0F);  // of norm 8
  TestTensor<double> numbers = decided(context.stream(), gradient, 2);
  EXPECT_EQ(at(numbers, StepNumber::GradientNorm), 8);
  EXPECT_EQ(at(numbers, StepNumber::GradientScale), 0.25);
  EXPECT_EQ(at(numbers, StepNumber::IsSkipped), 0);
  EXPECT_EQ(at(numbers, StepNumber::NumUpdates), 4);
  EXPECT_NEAR(at(numbers, StepNumber::Correction1), 1 - std::pow(0.8, 4), 1e-15);
  EXPECT_NEAR(at(numbers, StepNumber::Correction2), 1 - std::pow(0.95, 4), 1e-15);
  for (const double clip_norm : {0.0, 8.0, 9.0}) {
    TestTensor<double> unclipped = decided(context.stream(), gradient, clip_norm);
    EXPECT_EQ(at(unclipped, StepNumber::GradientScale), 1) << clip_norm;
  }
}

TEST(DecideStep, SkipsWhatIsNotFiniteAnywhere) {
  const OpContext context;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (std::size_t i = 0; i < 5000; i += 7) {
      TestTensor<float> values({5003}, 1.0F);
      values.values()[i] = bad;
      TestTensor<double> numbers = decided(context.stream(), values);
      EXPECT_EQ(at(numbers, StepNumber::IsSkipped), 1) << bad << " at " << i;
      EXPECT_EQ(at(numbers, StepNumber::NumUpdates), 3) << bad << " at " << i;
    }
    TestTensor<double> numbers = decided(context.stream(), TestTensor<float>({16}, 1.0F), 1, bad);
    EXPECT_EQ(at(numbers, StepNumber::IsSkipped), 1) << "loss " << bad;
  }
}

TEST(DecideStep, DoesNotOverflowWhereFloatsWould) {
  const OpContext context;
  TestTensor<double> numbers = decided(context.stream(), TestTensor<float>({100}, 1e30F));
  EXPECT_NEAR(at(numbers, StepNumber::GradientNorm), 1e31, 1e25);
  EXPECT_EQ(at(numbers, StepNumber::IsSkipped), 0);
}

}  // namespace
}  // namespace plenum::ops
