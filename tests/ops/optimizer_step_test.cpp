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

struct Buffers {
  TestTensor<float> gradient = random_tensor({kElements}, 1);
  TestTensor<float> weight = random_tensor({kElements}, 2);
  TestTensor<float> first_moment = random_tensor({kElements}, 3);
  TestTensor<float> second_moment = random_tensor({kElements}, 4);

  Buffers() {
    for (float& value : second_moment.values()) value = value * value;
  }

  AdamStep step() {
    return {.ranges = kRanges,
            .gradient_N = gradient.view(),
            .weight_N = weight,
            .first_moment_N = first_moment,
            .second_moment_N = second_moment,
            .learning_rate = 0.02,
            .beta1 = 0.8,
            .beta2 = 0.95,
            .epsilon = 1e-3,
            .decay = 0.1,
            .correction1 = 0.7,
            .correction2 = 0.4,
            .gradient_scale = 0.5};
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
  return {step.learning_rate,          step.beta1,       step.beta2,       step.epsilon,
          is_decayed ? step.decay : 0, step.correction1, step.correction2, step.gradient_scale};
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

TEST(AdamStep, KeepsDecaysThatAreSmallBesideOne) {
  const OpContext context;
  TestTensor<float> weight({1}, 1.0F);
  TestTensor<float> zero({1});
  TestTensor<float> first({1});
  TestTensor<float> second({1});
  const std::vector<FlatRange> ranges = {{0, 1, true}};
  for (int step = 0; step < 1000; ++step) {
    kernels::adam_step(context.stream(), {.ranges = ranges,
                                          .gradient_N = zero.view(),
                                          .weight_N = weight,
                                          .first_moment_N = first,
                                          .second_moment_N = second,
                                          .learning_rate = 1.8e-5,
                                          .decay = 0.01});
  }
  // 1.8e-7 is three times the distance of floats below 1; 1 - 1.8e-7 alone is off by a hundredth of it.
  EXPECT_NEAR(weight.values()[0], std::pow(1 - 1.8e-7, 1000), 1e-5);
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
  kernels::lamb_step(context.stream(), {.ranges = ranges,
                                        .gradient_N = gradient.view(),
                                        .weight_N = weight,
                                        .first_moment_N = first,
                                        .second_moment_N = second,
                                        .learning_rate = 0.5,
                                        .epsilon = 1e-6,
                                        .decay = 0,
                                        .correction1 = 0.1,
                                        .correction2 = 0.001});
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

TEST(SumOfSquares, MatchesADoubleSumForAnyCountAndThreads) {
  const OpContext one;
  const OpContext three(3);
  for (const std::int64_t count : {0, 1, 15, 16, 17, 255, 257, 4096, 100'003}) {
    const TestTensor<float> values = random_tensor({count}, 5, 100);
    double expected = 0;
    for (const double value : values.doubles()) expected += value * value;
    const double sum = kernels::sum_of_squares(one.stream(), values.view());
    EXPECT_NEAR(sum, expected, 1e-12 * expected) << count;
    EXPECT_EQ(sum, kernels::sum_of_squares(three.stream(), values.view())) << count;
  }
}

TEST(SumOfSquares, SeesWhatIsNotFiniteAnywhere) {
  const OpContext context;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < 5000; at += 7) {
      TestTensor<float> values({5003}, 1.0F);
      values.values()[at] = bad;
      EXPECT_FALSE(std::isfinite(kernels::sum_of_squares(context.stream(), values.view())))
          << bad << " at " << at;
    }
  }
}

TEST(SumOfSquares, DoesNotOverflowWhereFloatsWould) {
  const OpContext context;
  const TestTensor<float> values({100}, 1e30F);
  EXPECT_NEAR(kernels::sum_of_squares(context.stream(), values.view()), 1e62, 1e56);
}

}  // namespace
}  // namespace plenum::ops
